#!/usr/bin/env python3
"""A small shop in SQLite, whose catalogue is made up, and two tools to look around in it.

usage: shop.py make             makes the catalogue, the same one each time
       shop.py search QUERY     the ten items that fit best: numbers and titles
       shop.py explore ITEM     all that is known of an item: price, options, features

The catalogue lies in the file that the variable SHOP names, or else in the folder for temporary files.
"""

import itertools
import json
import os
import sqlite3
import sys
import tempfile

KINDS = {"bed": ("frame", (180, 640)), "lamp": ("shade", (18, 120)), "backpack": ("strap", (35, 160)), "kettle": ("handle", (22, 95))}
COLOURS = ("black", "white", "red", "green", "walnut")
SIZES = ("small", "medium", "queen-sized", "king-sized")
MAKERS = ("Alder", "Birch", "Cedar", "Damson")


def make(path):
    shop = sqlite3.connect(path)
    shop.executescript("DROP TABLE IF EXISTS items; DROP TABLE IF EXISTS words;"
                       "CREATE TABLE items(id INTEGER PRIMARY KEY, title, price, size, colours, feature);"
                       "CREATE VIRTUAL TABLE words USING fts5(title, colours, feature);")
    for number, (kind, maker, size, first) in enumerate(itertools.product(KINDS, MAKERS, SIZES, range(len(COLOURS)))):
        part, (least, most) = KINDS[kind]
        price = least + (number * 37) % (most - least)
        colours = ", ".join(COLOURS[(first + step) % len(COLOURS)] for step in range(2))
        title = f"{maker} {size} {kind}, model {number % 10}"
        feature = f"{part} of {('steel', 'oak', 'linen')[number % 3]}"
        shop.execute("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)", (number + 1, title, price, size, colours, feature))
        shop.execute("INSERT INTO words(rowid, title, colours, feature) VALUES (?, ?, ?, ?)", (number + 1, title, colours, feature))
    shop.commit()


def search(shop, query):
    words = [word for word in "".join(c if c.isalnum() else " " for c in query).split() if word]
    if not words:
        sys.exit("the query has no word")
    # Any word may match; items that have more of them, and rarer ones, come first.
    rows = shop.execute("SELECT rowid, title FROM words WHERE words MATCH ? ORDER BY rank, rowid LIMIT 10",
                        (" OR ".join(f'"{word}"' for word in words),))
    return [{"item": item, "title": title} for item, title in rows]


def explore(shop, item):
    row = shop.execute("SELECT title, price, size, colours, feature FROM items WHERE id = ?", (item,)).fetchone()
    if row is None:
        sys.exit(f"the shop has no item {item}")
    title, price, size, colours, feature = row
    return {"item": int(item), "title": title, "price": price, "size": size, "colours": colours.split(", "), "feature": feature}


def main():
    path = os.environ.get("SHOP") or os.path.join(tempfile.gettempdir(), "verbatim-shop.db")
    if sys.argv[1:] == ["make"]:
        make(path)
        return
    if len(sys.argv) != 3 or sys.argv[1] not in ("search", "explore"):
        sys.exit(__doc__)
    if not os.path.exists(path):
        sys.exit(f"{path} is not there: make it with `shop.py make`")
    shop = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    found = search(shop, sys.argv[2]) if sys.argv[1] == "search" else explore(shop, sys.argv[2])
    print(json.dumps(found))


main()
