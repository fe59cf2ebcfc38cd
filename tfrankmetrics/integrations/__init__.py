"""Shells that give other tools' interfaces to the metrics of this package.

Each module is named after the tool whose interface it has. Only the module that you
import imports its tool.
"""
