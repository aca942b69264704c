"""Runs engines by turns on one machine in one sitting and makes the record (schemas/record.json).

compute: every engine is loaded and warm; each round asks each engine once. A process serves one workload after the
other, where its harness can load again. warm, cold: each round starts each engine anew,
with the caches of an earlier start, or with none and the model file out of the page cache."""

import concurrent.futures
import dataclasses
import pathlib
import shutil
import statistics
import tempfile
import time

from comparison import estimates, gguf, install, machine, outputs, prompts, registry
from comparison.process import Failed, Harness

LEAST_SHARE, MOST_SHARE = 0.25, 1.02  # of the clock around a request; new streams spend time before decoding
CONTEXT_STEP = 256  # contexts are rounded up to it: some engines do so by themselves


@dataclasses.dataclass
class Plan:
    engines: list
    workloads: list
    model: pathlib.Path
    folder: pathlib.Path  # where engines are installed
    mode: str = "compute"
    profile: str = "parity"
    intent: str = "calibrate"
    rounds: int = 5
    warmups: int = 1
    apart: bool = False
    timeout: int = 600  # seconds for one answer
    budget: int = 0  # seconds after which no further round begins; 0: none
    warmup_tokens: int = 0  # generated in a warm-up; 0: as many as in a round
    together: bool = False  # engines are loaded and warmed up at the same time
    rounds_of: dict = dataclasses.field(default_factory=dict)  # engine -> workload -> rounds, where fewer than `rounds`
    label: str = ""
    machine: str = ""
    command: str = ""
    options: dict = dataclasses.field(default_factory=dict)  # engine -> option -> value, above the profile's
    environment: dict = dataclasses.field(default_factory=dict)  # engine -> variable -> value


def context_of(workload):
    needed = workload["prompt"] + workload["decode"] + 1
    return -(-needed // CONTEXT_STEP) * CONTEXT_STEP


def cache_environment(folder):
    """Where drivers, browsers and engines keep what they compiled. NVIDIA's driver keeps nothing in a folder that does
    not exist, and by its manual nothing for root unless it is told to."""
    (folder / "gl").mkdir(parents=True, exist_ok=True)
    return {"XDG_CACHE_HOME": str(folder), "MESA_SHADER_CACHE_DIR": str(folder / "mesa"), "__GL_SHADER_DISK_CACHE": "1",
            "__GL_SHADER_DISK_CACHE_PATH": str(folder / "gl"), "CUDA_CACHE_PATH": str(folder / "cuda")}


class Runner:
    def __init__(self, plan, say):
        self.plan, self.say = plan, say
        self.facts, self.failures, self.results = {}, [], []
        self.told = {}  # (engine, setting) -> its values, of all workloads, in the order in which they came
        self.started = time.monotonic()
        self.running = {}  # engine -> the process that the next workload may load again
        self.vocabulary = gguf.vocabulary(plan.model)

    def is_spent(self):
        return 0 < self.plan.budget < time.monotonic() - self.started

    def options_of(self, engine):
        return {**engine["harness"].get("options", {}), **engine["profiles"][self.plan.profile],
                **self.plan.options.get(engine["name"], {})}

    def environment_of(self, engine):
        return {**engine["harness"].get("environment", {}), **self.plan.environment.get(engine["name"], {})}

    def rounds_of(self, engine, workload):
        return min(self.plan.rounds, int(self.plan.rounds_of.get(engine["name"], {}).get(workload["name"], self.plan.rounds)))

    def start(self, engine, workload, cache):
        """(harness, what load answered)."""
        home = self.plan.folder / engine["name"]
        harness = self.running.pop(engine["name"], None)
        if not harness:
            words = [word.replace("{folder}", str(home)) for word in engine["harness"]["command"]]
            harness = Harness(words, {**cache_environment(cache), **self.environment_of(engine)}, home / "log.txt")
        values = {"model": str(self.plan.model.resolve()), "context": str(context_of(workload)),
                  "streams": str(workload["streams"]), "cache": str(cache / "engine"), "libraries": str(home / "lib"),
                  "version": engine["version"], **self.options_of(engine)}
        try:
            loaded = harness.load(values, self.plan.timeout)
        except Failed:
            harness.quit()
            raise
        facts = self.facts.setdefault(engine["name"], {
            "name": engine["name"], "title": engine["title"], "version": loaded["version"], "device": loaded["device"],
            "options": self.options_of(engine), "settings": {},
            "environment": self.environment_of(engine), "fairness": engine["fairness"]})
        for name, value in loaded["settings"].items():
            values = self.told.setdefault((engine["name"], name), [])
            if value not in values:
                values.append(value)
            facts["settings"][name] = ", ".join(values)
        return harness, loaded

    def leave(self, engine, harness):
        """Runs after a workload that went well."""
        if engine["harness"].get("loads_again") and not self.plan.apart:
            self.running[engine["name"]] = harness
        else:
            harness.quit()

    def generate(self, engine, harness, loaded, workload, turn):
        asked = prompts.prompts(workload, turn, loaded["vocabulary"], self.vocabulary)
        kind = engine["harness"].get("prompts", "tokens")
        if kind == "text" and asked[0].text is None:
            raise Failed("It takes texts alone, and this model has no words to make them of.")
        answer = harness.generate(workload["decode"], [getattr(one, kind) for one in asked], self.plan.timeout)
        check_answer(workload, answer)
        return answer

    def fail(self, engine, workload, error):
        reason = str(error).replace(str(self.plan.folder), "ENGINES").replace(str(self.plan.model.resolve().parent), "MODELS")
        self.say(f"{workload['name']} {engine['name']}: {reason}")
        self.failures.append({"engine": engine["name"], "workload": workload["name"], "reason": reason})

    def turns(self, engines, workload, one):
        """Rounds of all engines by turns: one(engine, turn) -> (figures, streams); an engine that fails leaves."""
        samples = {engine["name"]: [] for engine in engines}
        answers = {engine["name"]: {} for engine in engines}
        left = list(engines)
        self.model.result()  # nothing runs beside a round
        for turn in range(self.plan.rounds):
            if turn > 0 and self.is_spent():
                break
            # Every other round runs backwards, so that no engine always runs after the same neighbour.
            for engine in left[::-1] if turn % 2 else list(left):
                if turn >= self.rounds_of(engine, workload):
                    continue
                try:
                    figures, answers[engine["name"]][turn] = one(engine, turn)
                except Failed as error:
                    left.remove(engine)
                    self.fail(engine, workload, error)
                    continue
                samples[engine["name"]].append(figures)
                told = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
                self.say(f"{workload['name']} round {turn + 1} {engine['name']}: {told}")
        self.keep(workload, [engine for engine in engines if engine in left], samples, answers)

    def keep(self, workload, engines, samples, answers):
        base = next(iter(engines), None)
        for engine in engines:
            name = engine["name"]
            figures = {key: estimates.estimate([sample[key] for sample in samples[name]]) for key in samples[name][0]}
            self.results.append({
                "engine": name, "workload": workload["name"], "prompt": workload["prompt"], "decode": workload["decode"],
                "streams": workload["streams"], "figures": figures,
                "output": outputs.compare(base["name"], answers[base["name"]], answers[name])})

    def compute(self, workload):
        seats, failed = {}, set()
        cache = self.plan.folder / "cache"
        warmup = {**workload, "decode": min(self.plan.warmup_tokens or workload["decode"], workload["decode"])}

        def sit(engine):
            harness, loaded = self.start(engine, workload, cache / engine["name"])
            try:
                for i in range(self.plan.warmups):
                    self.generate(engine, harness, loaded, warmup, -1 - i)
            except Failed:
                harness.quit()
                raise
            return harness, loaded

        def one(engine, turn):
            harness, loaded = sit(engine) if self.plan.apart else seats[engine["name"]]
            try:
                answer = self.generate(engine, harness, loaded, workload, turn)
            except Failed:
                failed.add(engine["name"])
                raise
            finally:
                if self.plan.apart:
                    harness.quit()
            return rates(workload, answer), answer["streams"]

        engines, able, sitting = [], self.able(workload), {}
        with concurrent.futures.ThreadPoolExecutor(len(able) or 1 if self.plan.together else 1) as pool:
            for engine in [] if self.plan.apart else able:
                sitting[engine["name"]] = pool.submit(sit, engine)
                if self.plan.profile in engine["harness"].get("alone_in", []):
                    concurrent.futures.wait(sitting.values())
        for engine in able:
            try:
                if engine["name"] in sitting:
                    seats[engine["name"]] = sitting[engine["name"]].result()
                engines.append(engine)
            except Failed as error:
                self.fail(engine, workload, error)
        try:
            self.turns(engines, workload, one)
        finally:
            for engine in able:
                if engine["name"] in failed and engine["name"] in seats:
                    seats[engine["name"]][0].quit()
                elif engine["name"] in seats:
                    self.leave(engine, seats[engine["name"]][0])

    def loads(self, workload):
        cold = self.plan.mode == "cold"
        with tempfile.TemporaryDirectory(dir=self.plan.folder) as folder:
            scratch = pathlib.Path(folder)

            def one(engine, turn):
                cache = scratch / engine["name"]
                if cold:
                    shutil.rmtree(cache, ignore_errors=True)
                    machine.forget_pages(self.plan.model)
                harness, loaded = self.start(engine, workload, cache)
                try:
                    answer = self.generate(engine, harness, loaded, workload, turn)
                finally:
                    harness.quit()
                ttft = statistics.median(stream["ttft"] for stream in answer["streams"])
                return {"load_s": loaded["seconds"], "start_and_load_s": loaded["from_start"], "ttft_s": ttft,
                        "start_to_token_s": loaded["from_start"] + ttft}, answer["streams"]

            engines = self.able(workload)
            for engine in list(engines) if not cold else []:
                try:
                    one(engine, -1)  # fills the caches
                except Failed as error:
                    engines.remove(engine)
                    self.fail(engine, workload, error)
            self.turns(engines, workload, one)

    def able(self, workload):
        """The engines that take so many streams."""
        out = []
        for engine in self.plan.engines:
            most = engine["harness"]["max_streams"]
            if workload["streams"] <= most:
                out.append(engine)
            else:
                self.fail(engine, workload, Failed(f"Its harness runs at most {most} streams."))
        return out

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            self.model = pool.submit(machine.model_facts, self.plan.model)
            try:
                self.run_workloads()
            finally:
                for harness in self.running.values():
                    harness.quit()
        return self.record()

    def run_workloads(self):
        for workload in self.plan.workloads:
            if self.is_spent():
                for engine in self.plan.engines:
                    self.fail(engine, workload, Failed("The run's time was spent."))
                continue
            (self.compute if self.plan.mode == "compute" else self.loads)(workload)

    def record(self):
        if not self.facts:
            raise Failed("No engine could be loaded:\n" + "\n".join(
                f"{failure['engine']}: {failure['reason']}" for failure in self.failures))
        plan = self.plan
        home = plan.folder / "doppler-native"
        program = home / "bin" / "doppler"
        return {
            "kind": "rivals", "version": 1, "label": plan.label, "intent": plan.intent, "mode": plan.mode,
            "profile": plan.profile, "date": machine.now(), "commit": machine.commit(home), "command": plan.command,
            "machine": machine.describe(plan.machine, program if program.is_file() else None),
            "model": self.model.result(),
            "settings": {"rounds": plan.rounds, "warmups": plan.warmups, "apart": plan.apart, "seed": prompts.SEED,
                         "warmup_tokens": plan.warmup_tokens, "together": plan.together,
                         "rounds_of": {name: {workload: int(count) for workload, count in counts.items()}
                                       for name, counts in plan.rounds_of.items()}},
            "engines": [self.facts[engine["name"]] for engine in plan.engines if engine["name"] in self.facts],
            "results": self.results, "failures": self.failures,
        }


def check_answer(workload, answer):
    """An engine's own times have to fit into the harness's clock around them, and to be most of it."""
    behind = answer["seconds"] - answer["prefill"]
    longest = max(stream["decode"] for stream in answer["streams"])
    if not LEAST_SHARE * behind <= longest <= MOST_SHARE * answer["seconds"]:
        raise Failed(f"Its decoding took {longest:.4f} s by its own account, of {behind:.4f} s by the clock around it.")
    for stream in answer["streams"]:
        if stream.get("tokens") and len(stream["tokens"]) != workload["decode"]:
            raise Failed(f"It gave {len(stream['tokens'])} tokens of {workload['decode']}.")


def rates(workload, answer):
    """The figures of a table, from one answer. Streams add up: each counts its own intervals."""
    streams = answer["streams"]
    return {
        "prefill_tok_s": workload["prompt"] * len(streams) / answer["prefill"],
        "ttft_s": statistics.median(stream["ttft"] for stream in streams),
        "decode_tok_s": sum(stream["intervals"] / stream["decode"] for stream in streams),
        "total_tok_s": workload["decode"] * len(streams) / answer["seconds"],
    }


def chosen_engines(words, folder):
    """By name, or all that are installed and run."""
    every = registry.engines()
    if not words:
        return [engine for engine in every.values() if install.is_installed(engine, folder)]
    engines = [registry.find(every, word, "engine") for word in words]
    for engine in engines:
        if engine["status"] == "does not run":
            raise registry.Unknown(f"{engine['name']} does not run: {engine['reason']}")
    return engines
