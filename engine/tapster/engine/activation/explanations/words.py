"""The sentences of explanations, in English and Chinese.

Each reason has what happened and, for an entry that stayed out, what it would have needed. Names in braces are filled
from the decision's data.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

Language: TypeAlias = Literal["en", "zh"]


@attrs.frozen
class Words:
    """What happened, and what the entry would have needed (empty where nothing was missing)."""

    said: str
    needed: str = ""


_EN: Mapping[str, Words] = {
    "constant": Words("always active"),
    "primary_key": Words("a key is in the text"),
    "secondary_match": Words("a key is in the text and the secondary keys ({logic}) agree"),
    "vector_match": Words("a semantic matcher confirmed it"),
    "sticky": Words("kept active by an earlier turn (sticky); no key was needed"),
    "decorator_on": Words("its content starts with @@activate"),
    "forced": Words("activated from outside"),
    "no_key_match": Words("none of its keys is in the searched text", "one of these keys in the text: {keys}"),
    "no_usable_key": Words("it has no key left once blank ones are dropped", "a key that is not blank, or constant"),
    "needs_external_match": Words(
        "a semantic entry that no matcher confirmed", "a confirmed match, or one of these keys in the text: {keys}"
    ),
    "secondary_miss": Words(
        "a key is in the text, but its secondary keys don't satisfy {logic}", "secondary keys as {logic} asks: {others}"
    ),
    "disabled": Words("it is switched off", "to be switched on"),
    "trigger": Words("it is limited to other kinds of generation than {trigger}", "a generation of kind {wanted}"),
    "character_filter": Words("its filter excludes this character", "a character that its filter lets through"),
    "tag_filter": Words("its filter excludes this character's tags", "a character with the tags its filter wants"),
    "delay": Words("the chat has {messages} messages and it waits for {delay}", "a chat of {delay} messages"),
    "cooldown": Words("it is cooling down after an earlier turn", "the cooldown to end"),
    "delay_until_recursion": Words(
        "it waits for recursion of level {level}", "recursion to reach level {level} with its key in the text"
    ),
    "exclude_recursion": Words("its key is only in text that recursion added", "one of its keys in the chat itself"),
    "decorator_off": Words("its content starts with @@dont_activate", "that line to be taken out"),
    "group_lost": Words("it lost in group {group} to {winner}, decided by {by}", "to win its group {group}"),
    "probability": Words("its chance of {chance} % failed with a roll of {roll}", "a roll below its chance"),
    "budget": Words("no budget was left for it (limit {budget} tokens)", "a larger budget, or to be exempt from it"),
    "max_recursion_steps": Words(
        "its key is in text that was just added, but no pass was left (limit {limit})", "one more scan pass"
    ),
    "duplicate_book": Words("its book is a copy of {winner}, which is loaded", "the other book to be unloaded"),
    "empty_content": Words("it activated, but has no content to deliver", "some content"),
    "outlet_unsupported": Words("it activated, but belongs to an outlet, which this mode lacks", "another position"),
}
_ZH: Mapping[str, Words] = {
    "constant": Words("常驻条目，始终生效"),
    "primary_key": Words("文本中出现了它的关键词"),
    "secondary_match": Words("文本中出现了它的关键词，次要关键词（{logic}）也满足"),
    "vector_match": Words("语义匹配已确认"),
    "sticky": Words("由先前回合的粘性效果保持生效，无需关键词"),
    "decorator_on": Words("内容以 @@activate 开头"),
    "forced": Words("由外部激活"),
    "no_key_match": Words("所搜索的文本中没有它的任何关键词", "文本中出现其中一个关键词：{keys}"),
    "no_usable_key": Words("去掉空白关键词后没有可用的关键词", "一个非空白的关键词，或设为常驻"),
    "needs_external_match": Words("语义条目，没有匹配器确认", "语义匹配确认，或文本中出现其中一个关键词：{keys}"),
    "secondary_miss": Words("关键词出现了，但次要关键词不满足 {logic}", "次要关键词满足 {logic}：{others}"),
    "disabled": Words("条目已停用", "启用该条目"),
    "trigger": Words("条目不用于 {trigger} 类型的生成", "{wanted} 类型的生成"),
    "character_filter": Words("角色过滤排除了当前角色", "过滤允许的角色"),
    "tag_filter": Words("标签过滤排除了当前角色", "带有所需标签的角色"),
    "delay": Words("对话只有 {messages} 条消息，它要等到 {delay} 条", "对话达到 {delay} 条消息"),
    "cooldown": Words("先前回合之后正在冷却", "冷却结束"),
    "delay_until_recursion": Words("等待第 {level} 级递归", "递归到第 {level} 级且文本中有它的关键词"),
    "exclude_recursion": Words("关键词只出现在递归加入的文本中", "关键词出现在对话本身"),
    "decorator_off": Words("内容以 @@dont_activate 开头", "去掉该行"),
    "group_lost": Words("在分组 {group} 中输给 {winner}，依据 {by}", "在分组 {group} 中胜出"),
    "probability": Words("{chance}% 的概率未通过，掷值 {roll}", "掷值低于其概率"),
    "budget": Words("预算已用完（上限 {budget} 个 token）", "更大的预算，或不计入预算"),
    "max_recursion_steps": Words("关键词在刚加入的文本中，但扫描次数已到上限（{limit}）", "再扫描一次"),
    "duplicate_book": Words("所在的书是已加载的 {winner} 的副本", "卸载另一本书"),
    "empty_content": Words("已激活，但没有可投放的内容", "填写内容"),
    "outlet_unsupported": Words("已激活，但属于此模式没有的出口位置", "改用其他位置"),
}
WORDS: Mapping[Language, Mapping[str, Words]] = {"en": _EN, "zh": _ZH}
PLACES: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "message": "{key} in message {label} at {start}-{end}",
        "source": "{key} in {label} at {start}-{end}",
        "injection": "{key} in the injection {label} at {start}-{end}",
        "recursion": "{key} in text that pass {label} added at {start}-{end}",
        "none": "{key}, which is blank and matches anything",
        "text": "{key} in the scanned text at {start}-{end}",
    },
    "zh": {
        "message": "{key}：第 {label} 条消息 {start}-{end}",
        "source": "{key}：{label} {start}-{end}",
        "injection": "{key}：注入文本 {label} {start}-{end}",
        "recursion": "{key}：第 {label} 次扫描加入的文本 {start}-{end}",
        "none": "{key}：空白，匹配任何文本",
        "text": "{key}：扫描文本 {start}-{end}",
    },
}
EXTRAS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "matched": "matched: {places}",
        "needed": "It would have needed {needed}.",
        "deeper": "It was only found because too few entries had activated and the scan went deeper.",
        "stop": ".",
    },
    "zh": {
        "matched": "命中：{places}",
        "needed": "需要：{needed}。",
        "deeper": "因激活的条目不足而扩大扫描后才找到。",
        "stop": "。",
    },
}
