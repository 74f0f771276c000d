"""The data sets: what they are, where, under which licence, and how they are converted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from topicloom_lab.data_sets.fact_consolidation import convert_fact_consolidation
from topicloom_lab.data_sets.lifebench import PARTS as LIFEBENCH_PARTS, convert_lifebench
from topicloom_lab.data_sets.locomo_plus import (
    PARTS as LOCOMO_PLUS_PARTS,
    convert_locomo_plus,
    split_locomo_plus,
)
from topicloom_lab.data_sets.longmemeval import convert_longmemeval
from topicloom_lab.data_sets.proactive import PARTS as PROACTIVE_PARTS, convert_proactive
from topicloom_lab.data_sets.qmsum import convert_qmsum
from topicloom_lab.data_sets.realmem import convert_realmem, label_realmem
from topicloom_lab.data_sets.rows import Row
from topicloom_lab.data_sets.two_people import convert_locomo, convert_realtalk


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set that others publish."""

    what: str
    home: str
    """Where it is described."""
    licence: str
    citation: str
    """Who to cite, and where the paper is."""
    files: tuple[str, ...] = ()
    """Addresses of the files that are converted, or of folders if it has `parts`."""
    convert: Callable[[Any, str], Row] | None = None
    """A conversation of ours from one of theirs and its name; None where that is not done."""
    parts: tuple[str, ...] = ()
    """Files of a folder that belong together; none where each file holds conversations."""
    split: Callable[[Any], Iterable[Any]] = lambda folder: (folder,)
    """The conversations of a folder that has `parts`; without it, all of them make one."""
    label: Callable[[Any, str], Row] | None = None
    """The conversation with the topic of each message; None where topics are not known."""


_RAW = "https://raw.githubusercontent.com"
_TALKS = (
    "1_Emi_Elise 2_Kevin_Elise 3_Kevin_Paola 4_Emi_Paola 5_Nicolas_Nebraas 6_Vanessa_Nicolas"
    " 7_Nebraas_Vanessa 8_Akib_Muhhamed 9_Fahim_Akib 10_Fahim_Muhhamed"
).split()
_PEOPLE = (
    "Adeleke_Okonjo Ethan_Hunt Kenta_Tanaka Kim_Ji_young Liam_O_Connor Lin_Wanyu Oliver_Smith"
    " Pak_Budi Sarah_Miller Sophie_Dubois"
).split()
_DOMAINS = "music cooking fitness pet travel".split()
_PHONES = (
    "fenghaoran leimingxuan lumingqiang maxiulan songyajing sunyuwei yemingxuan yinhao yuxiaowei"
    " yuxiaowen"
).split()


def _longmemeval(what: str, file: str) -> DataSet:
    address = "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/main"
    return DataSet(
        f"500 questions, each about a history of its own: {what}",
        "https://github.com/xiaowu0162/LongMemEval",
        "MIT",
        "Wu et al., ICLR 2025, arXiv:2410.10813",
        (f"{address}/{file}",),
        convert_longmemeval,
    )


DATA_SETS: Mapping[str, DataSet] = {
    "locomo": DataSet(
        "10 very long chats of two people, made up",
        "https://github.com/snap-research/locomo",
        "CC BY-NC 4.0",
        "Maharana et al., ACL 2024, arXiv:2402.17753",
        (f"{_RAW}/snap-research/locomo/main/data/locomo10.json",),
        convert_locomo,
    ),
    "realtalk": DataSet(
        "10 real chats of two people over three weeks",
        "https://github.com/danny911kr/REALTALK",
        "not stated",
        "Lee et al., 2025, arXiv:2502.13270",
        tuple(f"{_RAW}/danny911kr/REALTALK/main/data/Chat_{talk}.json" for talk in _TALKS),
        convert_realtalk,
    ),
    "realmem": DataSet(
        "10 people, each with an assistant and some projects over months, made up",
        "https://github.com/AvatarMemory/RealMemBench",
        "Apache-2.0",
        "Bian et al., Findings of ACL 2026, arXiv:2601.06966",
        tuple(
            f"{_RAW}/AvatarMemory/RealMemBench/main/dataset/{person}_dialogues_256k.json"
            for person in _PEOPLE
        ),
        convert_realmem,
        label=label_realmem,
    ),
    "lifebench": DataSet(
        "10 people's phones over a year, in Chinese, made up",
        "https://github.com/1754955896/LifeBench",
        "Apache-2.0",
        "Cheng et al., 2026, arXiv:2603.03781",
        tuple(
            f"{_RAW}/1754955896/LifeBench/main/life_bench_data/data/{phone}" for phone in _PHONES
        ),
        convert_lifebench,
        LIFEBENCH_PARTS,
    ),
    "locomo-plus": DataSet(
        "401 remarks, each related by meaning alone to one of weeks before, in LoCoMo's chats",
        "https://github.com/xjtuleeyf/Locomo-Plus",
        "not stated; LoCoMo CC BY-NC 4.0",
        "Li et al., 2026, arXiv:2602.10715",
        (f"{_RAW}/xjtuleeyf/Locomo-Plus/main/data",),
        convert_locomo_plus,
        LOCOMO_PLUS_PARTS,
        split_locomo_plus,
    ),
    "proactive": DataSet(
        "5 people's remarks to an assistant that should bring back what they told, made up",
        "https://github.com/FxyQwQ/ProactiveMemBench",
        "MIT",
        "FxyQwQ, ProactiveMemBench, 2026",
        tuple(f"{_RAW}/FxyQwQ/ProactiveMemBench/main/data/{domain}" for domain in _DOMAINS),
        convert_proactive,
        PROACTIVE_PARTS,
    ),
    "longmemeval-s": _longmemeval("about 40 sessions", "longmemeval_s_cleaned.json"),
    "longmemeval-m": _longmemeval("about 500 sessions, 2.7 GB", "longmemeval_m_cleaned.json"),
    "longmemeval-oracle": _longmemeval("only what the answer rests on", "longmemeval_oracle.json"),
    "qmsum": DataSet(
        "35 real meetings, the part for validation",
        "https://github.com/Yale-LILY/QMSum",
        "MIT; AMI and ICSI CC BY 4.0",
        "Zhong et al., NAACL 2021, arXiv:2104.05938",
        (f"{_RAW}/Yale-LILY/QMSum/main/data/ALL/jsonl/val.jsonl",),
        convert_qmsum,
    ),
    "fact-consolidation": DataSet(
        "facts of which a later one overrides an earlier one, with exact answers",
        "https://github.com/HUST-AI-HYZ/MemoryAgentBench",
        "MIT",
        "Hu et al., 2025, arXiv:2507.05257",
        convert=convert_fact_consolidation,
    ),
    "beam": DataSet(
        "chats with an assistant of 128k tokens and more",
        "https://github.com/mohammadtavakoli78/BEAM",
        "CC BY-SA 4.0 as stated by a derivative",
        "Tavakoli et al., ICLR 2026, arXiv:2510.27246",
    ),
    "goodai": DataSet(
        "tasks interleaved in one chat",
        "https://github.com/GoodAI/goodai-ltm-benchmark",
        "MIT",
        "Castillo-Bolado et al., NeurIPS 2024, arXiv:2409.20222",
    ),
}
"""By name."""
