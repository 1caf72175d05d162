"""Scenes of contact made by code."""
import json, os
def make(folder, small=False):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "scenes.json")
    json.dump({"version": 1, "scenes": []}, open(path, "w"))
    return path
