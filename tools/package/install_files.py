"""Writes the files by which package managers install a release: for Windows winget's three and Scoop's one.
  install_files.py --version V --repository URL --packages FOLDER --out FOLDER
--packages: has the release's doppler-V-windows-x86_64.zip, whose SHA-256 the files say. --repository: the address of
the repository, whose release vV has this zip. The release workflow calls this (.github/workflows/release.yml). Whoever
keeps the entries sends the files to winget-pkgs and to a bucket of Scoop."""

import argparse
import hashlib
import json
import os
import sys

SENTENCE = "Large language models on WebGPU: command line, OpenAI-compatible server"
SCHEMA = "1.9.0"  # of winget's manifests
WINGET_ID = "Doppler.Doppler"


def scoop(version, repository, url, sha256):
    return {"scoop/doppler.json": json.dumps({
        "version": version, "description": SENTENCE, "homepage": repository, "license": "Apache-2.0",
        "architecture": {"64bit": {"url": url, "hash": sha256}},
        "extract_dir": f"doppler-{version}", "bin": "bin\\doppler.exe"}, indent=4) + "\n"}


def yaml(kind, rows):
    """Rows of one level, whose values are plain words, and lists that are given as text."""
    head = f"# yaml-language-server: $schema=https://aka.ms/winget-manifest.{kind}.{SCHEMA}.schema.json\n"
    rows = {"PackageIdentifier": WINGET_ID, **rows, "ManifestType": kind, "ManifestVersion": SCHEMA}
    return head + "".join(f"{name}:{value}\n" if value.startswith("\n") else f"{name}: {value}\n" for name, value in rows.items())


def winget(version, repository, url, sha256):
    installers = f"""
- Architecture: x64
  InstallerUrl: {url}
  InstallerSha256: {sha256.upper()}"""
    nested = f"""
- RelativeFilePath: doppler-{version}\\bin\\doppler.exe
  PortableCommandAlias: doppler"""
    return {
        f"winget/{WINGET_ID}.yaml": yaml("version", {"PackageVersion": version, "DefaultLocale": "en-US"}),
        # The program looks for its DLLs and its model beside itself, so that winget must not make a mere link to it.
        f"winget/{WINGET_ID}.installer.yaml": yaml("installer", {
            "PackageVersion": version, "MinimumOSVersion": "10.0.17134.0", "InstallerType": "zip", "NestedInstallerType": "portable",
            "NestedInstallerFiles": nested, "ArchiveBinariesDependOnPath": "true", "Installers": installers}),
        f"winget/{WINGET_ID}.locale.en-US.yaml": yaml("defaultLocale", {
            "PackageVersion": version, "PackageLocale": "en-US", "Publisher": "Doppler contributors", "PackageName": "Doppler",
            "PackageUrl": repository, "License": "Apache-2.0", "ShortDescription": f'"{SENTENCE}"'})}


def files(version, repository, sha256):
    url = f"{repository}/releases/download/v{version}/doppler-{version}-windows-x86_64.zip"
    return {**scoop(version, repository, url, sha256), **winget(version, repository, url, sha256)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag in ("version", "repository", "packages", "out"):
        parser.add_argument(f"--{flag}", required=True)
    args = parser.parse_args()
    package = os.path.join(args.packages, f"doppler-{args.version}-windows-x86_64.zip")
    if not os.path.exists(package):
        sys.exit(f"There is no {package}; tools/package/package.sh --windows makes it.")
    with open(package, "rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    for name, text in files(args.version, args.repository.rstrip("/"), sha256).items():
        path = os.path.join(args.out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        print(path)


if __name__ == "__main__":
    main()
