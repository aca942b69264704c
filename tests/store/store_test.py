"""The store's verbs (list, show, rm, cp), models by name, and pulls from a Hugging Face hub, an RDRR folder and
paths."""

import hashlib
import json
import os
import shutil
import subprocess
import unittest

import helpers
from faulty_server import Drop, FaultyServer, File
from helpers import StoreCase, model_bytes

MODEL = "models/storyteller.gguf"


@unittest.skipUnless(os.path.exists(MODEL), "the shipped model is not there")
class Verbs(StoreCase):
    def setUp(self):
        super().setUp()
        self.succeed("pull", MODEL)

    def test_list_show_cp_rm(self):
        self.assertIn("storyteller", self.succeed("list"))
        listed = self.succeed("list", "--json")["models"][0]
        self.assertEqual((listed["name"], listed["kind"], listed["bytes"]),
                         ("storyteller", "gguf", os.path.getsize(MODEL)))
        shown = self.succeed("show", "storyteller", "--json")
        with open(MODEL, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        self.assertEqual(shown["stored"]["files"][0]["sha256"], digest)
        self.assertIn("memory", json.dumps(shown["model"]))
        text = self.succeed("show", "storyteller")
        for part in (digest, "source", "Architecture", "Memory on the device"):
            self.assertIn(part, text)
        self.succeed("cp", "storyteller", "second")
        self.assertEqual(os.stat(os.path.join(self.store, "second", "storyteller.gguf")).st_nlink, 2)
        self.succeed("cp", "storyteller", self.home + "/out.gguf")
        self.assertEqual(os.path.getsize(self.home + "/out.gguf"), listed["bytes"])
        self.fail_with("exists already", "cp", "storyteller", self.home + "/out.gguf")
        for target in ("new/folder/", "new/folder/other.gguf"):  # folders are made
            path = os.path.join(self.home, target)
            self.assertIn(path, self.succeed("cp", "storyteller", path))
            self.assertEqual(os.path.getsize(path + "storyteller.gguf" * path.endswith("/")), listed["bytes"])
        self.fail_with('There is a model "second" already', "cp", "storyteller", "second")
        self.succeed("rm", "storyteller", "second")
        self.assertEqual(self.succeed("list", "--json")["models"], [])
        self.assertEqual(os.listdir(self.store), [])

    def test_a_name_stands_for_the_model_in_every_verb_and_a_path_wins(self):
        self.assertIn("storyteller", self.succeed("inspect", "storyteller"))
        self.assertTrue(self.succeed("tokenize", "-m", "storyteller", "a fox").strip())
        code, _, err = subprocess_in(self.home, self, "inspect", "storyteller")
        self.assertEqual(code, 0, err)
        with open(os.path.join(self.home, "storyteller"), "wb") as file:
            file.write(b"no model")
        code, _, err = subprocess_in(self.home, self, "inspect", "storyteller")
        self.assertEqual(code, 1, err)

    def test_sentences(self):
        self.fail_with('There is no model "storytelle" in .*; did you mean storyteller', "show", "storytelle")
        self.fail_with('"../storyteller" is no name of a stored model', "rm", "../storyteller")
        self.fail_with('"../storyteller" is no name', "cp", "../storyteller", "x")
        self.fail_with('"x y" is no name', "cp", "storyteller", "x y")
        with open(os.path.join(self.store, "storyteller", "doppler.json"), "w", encoding="utf-8") as record:
            record.write('{"version": 1, "files": [{"file": "../../x"}]}')
        self.fail_with("lacks the text|wrong name", "show", "storyteller")
        self.assertEqual(len(self.succeed("list", "--json")["problems"]), 1)
        self.succeed("rm", "storyteller")

    def test_the_same_source_again_is_no_work_and_another_no_accident(self):
        self.assertTrue(self.succeed("pull", "--json", MODEL)["was_there"])
        other = os.path.join(self.home, "storyteller.gguf")
        shutil.copy(MODEL, other)
        self.fail_with("already, from .*--name gives this one another name", "pull", other)
        self.succeed("pull", "--replace", other)
        self.assertEqual(self.succeed("list", "--json")["models"][0]["source"], os.path.realpath(other))


def subprocess_in(folder, case, *arguments):
    done = subprocess.run([helpers.DOPPLER, *arguments], cwd=folder, env=case.environment, capture_output=True, text=True,
                          timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


class Hub(StoreCase):
    """A hub as huggingface.co answers: an API with names, sizes and SHA-256, and addresses by commit."""

    def setUp(self):
        super().setUp()
        self.commit = "0123456789abcdef0123456789abcdef01234567"
        self.files = {"README.md": b"# hello", "tiny-Q4_K_M.gguf": model_bytes(300_000, 1),
                      "tiny-Q8_0.gguf": model_bytes(500_000, 2), "mmproj-tiny-f16.gguf": model_bytes(1000, 3),
                      "big/tiny-F16-00001-of-00002.gguf": model_bytes(1000, 4),
                      "big/tiny-F16-00002-of-00002.gguf": model_bytes(2000, 5)}
        self.server = FaultyServer({})
        self.addCleanup(self.server.close)
        self.environment["HF_ENDPOINT"] = self.server.url("") + "/"
        self.publish()

    def publish(self, large=lambda path: path.endswith((".gguf", ".safetensors"))):
        siblings = []
        for path, data in self.files.items():
            entry = {"rfilename": path, "size": len(data), "blobId": "x"}
            if large(path):
                entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
            siblings.append(entry)
            self.server.files["/org/tiny/resolve/%s/%s" % (self.commit, path)] = File(data)
        body = json.dumps({"id": "org/tiny", "sha": self.commit, "siblings": siblings}).encode()
        for revision in ("main", "v1.0"):
            path = "/api/models/org/tiny/revision/" + revision
            self.server.files[path] = lambda handler: handler.answer(200, body, {"Content-Type": "application/json"})

    def test_the_usual_quantisation_another_one_a_file_and_a_page(self):
        for source, file in (("org/tiny", "tiny-Q4_K_M.gguf"), ("org/tiny:q8_0", "tiny-Q8_0.gguf"),
                             ("org/tiny:mmproj-tiny-f16.gguf@v1.0", "mmproj-tiny-f16.gguf")):
            report = self.succeed("pull", "--json", source)
            self.assertEqual((report["entry"], report["revision"]), (file, self.commit))
            self.assertTrue(report["files"][0]["verified"])
            self.assertEqual(self.stored(file[:-5], file), self.files[file])
            # The vision tower's file comes with each model.
            others = [] if "mmproj" in file else ["mmproj-tiny-f16.gguf"]
            self.assertEqual([each["file"] for each in report["files"][1:]], others)
        page = self.server.url("/org/tiny/blob/main/tiny-Q4_K_M.gguf")
        self.assertEqual(self.succeed("pull", "--json", "--name", "page", page)["entry"], "tiny-Q4_K_M.gguf")

    def test_a_split_file_comes_whole(self):
        report = self.succeed("pull", "--json", "org/tiny:F16")
        self.assertEqual([f["file"] for f in report["files"]],
                         ["tiny-F16-00001-of-00002.gguf", "tiny-F16-00002-of-00002.gguf", "mmproj-tiny-f16.gguf"])
        self.assertEqual(report["name"], "tiny-F16")

    def test_a_folder_of_safetensors_comes_whole_and_goes_on_after_an_interruption(self):
        self.files = {"config.json": b"{}", "tokenizer.json": b"{}", "model.safetensors": model_bytes(900_000),
                      "pytorch_model.bin": b"no", "notes/config.json": b"no", ".gitattributes": b"no"}
        self.publish()
        path = "/org/tiny/resolve/%s/model.safetensors" % self.commit
        self.server.files[path].faults = [Drop(after=400_000)]
        self.fail_with("While fetching model.safetensors of org/tiny", "pull", "org/tiny", "--retries", "0")
        unfinished = self.succeed("list", "--json")["unfinished"][0]
        self.assertEqual(unfinished["bytes_total"], 900_004)
        report = self.succeed("pull", "--json", "tiny")
        self.assertEqual(self.server.ranges(path), [0, 400_000])
        self.assertEqual({f["file"] for f in report["files"]}, {"config.json", "tokenizer.json", "model.safetensors"})
        self.assertEqual(report["path"], os.path.join(self.store, "tiny"))

    def test_an_embedding_model_comes_with_its_modules_and_its_shards_alone(self):
        index = json.dumps({"weight_map": {"a": "model-1.safetensors"}}).encode()
        modules = json.dumps([{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"}]).encode()
        self.files = {"config.json": b"{}", "model.safetensors.index.json": index, "model-1.safetensors": model_bytes(5000),
                      "consolidated.safetensors": model_bytes(9000), "modules.json": modules,
                      "1_Pooling/config.json": b"{}", "2_Dense/config.json": b"{}",
                      "2_Dense/model.safetensors": model_bytes(4000), "onnx/model.onnx": b"no"}
        self.publish()
        wanted = set(self.files) - {"consolidated.safetensors", "onnx/model.onnx"}
        path = "/org/tiny/resolve/%s/2_Dense/model.safetensors" % self.commit
        self.server.files[path].faults = [Drop(after=1000)]
        self.fail_with("While fetching 2_Dense/model.safetensors", "pull", "org/tiny", "--retries", "0")
        report = self.succeed("pull", "--json", "org/tiny")
        self.assertEqual({f["file"] for f in report["files"]}, wanted)
        for file in wanted:
            self.assertEqual(self.stored("tiny", file), self.files[file])
        self.assert_nothing_half()
        self.succeed("cp", "tiny", "second")
        self.assertEqual(self.stored("second", "1_Pooling/config.json"), b"{}")
        copy = os.path.join(self.home, "out")
        self.succeed("cp", "tiny", copy)
        local = self.succeed("pull", "--json", "--name", "third", copy)
        self.assertEqual({f["file"] for f in local["files"]}, wanted)
        self.succeed("rm", "second")
        self.assertFalse(os.path.exists(os.path.join(self.store, "second")))

    def test_a_copy_of_fewer_files_is_told_of(self):
        self.files = {"config.json": b"{}", "model.safetensors": model_bytes(5000)}
        self.publish()
        self.succeed("pull", "org/tiny")
        self.files.update({"modules.json": b'[{"path": "1_Pooling"}]', "1_Pooling/config.json": b"{}"})
        self.publish()
        _, _, err = self.run_doppler("pull", "org/tiny")
        self.assertIn("tiny was stored without modules.json, 1_Pooling/config.json, which its source has; --replace "
                      "fetches it whole.", err)
        self.succeed("pull", "--replace", "org/tiny")
        self.assertEqual(self.stored("tiny", "1_Pooling/config.json"), b"{}")

    def test_the_hubs_name_may_stand_before(self):
        self.files = {"tiny_q4_k_m.gguf": model_bytes(3000, 1), "tiny_q8_0.gguf": model_bytes(4000, 2)}
        self.publish()
        for source, file in (("hf.co/org/tiny:Q8_0", "tiny_q8_0.gguf"), ("huggingface.co/org/tiny", "tiny_q4_k_m.gguf"),
                             ("https://huggingface.co/org/tiny:Q8_0", "tiny_q8_0.gguf"),
                             ("https://hf.co/org/tiny/blob/main/tiny_q4_k_m.gguf", "tiny_q4_k_m.gguf")):
            self.assertEqual(self.succeed("pull", "--json", "--replace", source)["entry"], file)

    def test_a_corrupted_file_of_the_hub_is_refused(self):
        wrong = bytearray(self.files["tiny-Q8_0.gguf"])
        wrong[1000] ^= 1
        self.server.files["/org/tiny/resolve/%s/tiny-Q8_0.gguf" % self.commit] = File(bytes(wrong))
        self.fail_with("The SHA-256 of .* but it should be", "pull", "org/tiny:Q8_0")
        self.assertEqual(os.listdir(self.store), [])

    def test_another_size_than_the_hub_says(self):
        self.server.files["/org/tiny/resolve/%s/tiny-Q8_0.gguf" % self.commit] = File(b"GGUF")
        self.fail_with("has 4 bytes, but it should have 500000", "pull", "org/tiny:Q8_0")

    def test_sentences(self):
        self.fail_with(r'"Q2_K" is the name or quantisation of no GGUF file in org/tiny; it has: tiny-Q4_K_M.gguf',
                       "pull", "org/tiny:Q2_K")
        self.fail_with("HTTP 404", "pull", "org/missing")
        self.fail_with("is no file or folder here", "pull", "org/../tiny")
        for body in (b"", b"[]", b"{" * 100, b'{"sha": "x", "siblings": [{"rfilename": "../../x.gguf"}]}',
                     b'{"sha": "../..", "siblings": []}', b'{"sha": 5}'):
            self.server.files["/api/models/org/tiny/revision/main"] = lambda h, body=body: h.answer(200, body)
            self.fail_with("hub", "pull", "org/tiny")


class Rdrr(StoreCase):
    def serve(self, files):
        server = FaultyServer({"/tiny-rdrr/" + name: File(data) for name, data in files.items()})
        self.addCleanup(server.close)
        return server, server.url("/tiny-rdrr/")

    def convert(self):
        folder = os.path.join(self.home, "tiny-rdrr")
        self.succeed("convert", MODEL, folder, "--shard-size", "4M")
        files = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as file:
                files[name] = file.read()
        return files

    def test_a_manifest_that_is_none(self):
        self.fail_with("manifest.json", "pull", self.serve({"manifest.json": b"{}"})[1])

    @unittest.skipUnless(os.path.exists(MODEL), "the shipped model is not there")
    def test_every_file_by_the_manifests_hashes(self):
        files = self.convert()
        server, url = self.serve(files)
        wrong = bytearray(files["shard_00001.bin"])
        wrong[12345] ^= 1
        server.files["/tiny-rdrr/shard_00001.bin"] = File(bytes(wrong))
        self.fail_with("The SHA-256 of .*shard_00001.bin is .* but it should be", "pull", url)
        self.assertEqual(self.succeed("list", "--json")["models"], [])
        server.files["/tiny-rdrr/shard_00001.bin"] = File(files["shard_00001.bin"])
        server.reset()
        report = self.succeed("pull", "--json", url)
        self.assertEqual(server.ranges("/tiny-rdrr/shard_00000.bin"), [])  # was there and right
        self.assertEqual((report["kind"], report["name"]), ("rdrr", "tiny-rdrr"))
        self.assertTrue(all(f["verified"] for f in report["files"]))
        self.assertEqual({f["file"] for f in report["files"]}, set(files))
        self.assertIn("tiny-rdrr", self.succeed("inspect", "tiny-rdrr"))
        copy = self.succeed("pull", "--json", "--name", "copy", os.path.join(self.home, "tiny-rdrr"))
        self.assertTrue(all(f["verified"] for f in copy["files"]))


if __name__ == "__main__":
    helpers.main()
