"""Ranking: from checked lists to `RankedLists`, which every formula reads."""
