#!/usr/bin/env python3
"""What the binary is made of, as CycloneDX 1.5 JSON on standard output, from Cargo.lock.

    sbom.py [--date 2026-11-23T00:00:00Z]
"""

import argparse
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = "x86_64-unknown-linux-gnu"


def metadata() -> dict:
    command = ["cargo", "metadata", "--format-version", "1", "--locked",
               "--filter-platform", TARGET]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def shipped(data: dict) -> tuple[dict, dict[str, list[str]]]:
    """The package `pondage`, and what it links to, each with what that needs: no tools of tests.

    The metadata is of the whole workspace, with features that tests alone ask for; `cargo tree` is
    of this program.
    """
    command = ["cargo", "tree", "-p", "pondage", "--locked", "--edges", "normal,build",
               "--target", TARGET, "--prefix", "none", "--format", "{p}"]
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    inside = {tuple(line.split()[:2]) for line in lines.splitlines()}
    linked = {package["id"]: package for package in data["packages"]
              if (package["name"], "v" + package["version"]) in inside}
    root = next(package for package in linked.values() if package["name"] == "pondage")
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    return root, {each: sorted(dep["pkg"] for dep in nodes[each]["deps"] if dep["pkg"] in linked)
                  for each in linked}


def component(package: dict) -> dict:
    purl = f"pkg:cargo/{package['name']}@{package['version']}"
    made = {"type": "library", "bom-ref": purl, "name": package["name"],
            "version": package["version"], "purl": purl}
    if package.get("license"):
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--date")
    date = parser.parse_args().date
    data = metadata()
    packages = {package["id"]: package for package in data["packages"]}
    root, needs = shipped(data)
    reference = {each: component(packages[each])["bom-ref"] for each in needs}
    application = component(root) | {"type": "application"}
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": application},
        "components": [component(packages[each]) for each in sorted(needs) if each != root["id"]],
        "dependencies": [{"ref": reference[each], "dependsOn": [reference[one] for one in needs[each]]}
                         for each in sorted(needs)],
    }
    if date:
        bom["metadata"]["timestamp"] = date
    print(json.dumps(bom, indent=1))


if __name__ == "__main__":
    main()
