"""The sentences of prompt explanations, in English and Chinese: what happened, and what it would have needed."""

from collections.abc import Mapping
from typing import Final

import attrs

from tapster.engine.activation.explanations import Language


@attrs.frozen
class Words:
    """A reason's two sentences; ``needed`` is empty for a prompt that was sent."""

    said: str
    needed: str = ""


WORDS: Final[Mapping[Language, Mapping[str, Words]]] = {
    "en": {
        "sent": Words("It is sent."),
        "in_chat": Words("It is sent among the messages, {depth} from the end."),
        "overridden": Words("It is sent with the card's own text in its place."),
        "off": Words("It is switched off.", "switching it on in the prompt order"),
        "not_in_order": Words("The prompt order doesn't name it.", "a place in the prompt order"),
        "unknown": Words("The prompt order names it, the preset has no such prompt.", "a prompt of that identifier"),
        "trigger": Words("It is only for {triggers}, this is {type}.", "another kind of generation"),
        "empty": Words("There is nothing to send at its place.", "some text there"),
        "history": Words("The host keeps the history; nothing is sent for this marker."),
        "no_marker": Words("Tapster knows no such marker.", "a marker of the contract"),
        "repeated": Words("What it marks was placed before.", "being the first to ask for it"),
        "no_room": Words("Its place among the messages is too old to fit.", "a lower depth or a larger context"),
    },
    "zh": {
        "sent": Words("已发送。"),
        "in_chat": Words("已插入聊天消息中，距末尾 {depth} 条。"),
        "overridden": Words("已发送，内容由角色卡自己的文本代替。"),
        "off": Words("已关闭。", "在提示词顺序里打开它"),
        "not_in_order": Words("提示词顺序里没有它。", "在提示词顺序里给它一个位置"),
        "unknown": Words("提示词顺序里有它，但预设里没有这条提示词。", "一条同名的提示词"),
        "trigger": Words("它只用于 {triggers}，这次是 {type}。", "另一种生成方式"),
        "empty": Words("它的位置上没有内容。", "那里有文本"),
        "history": Words("历史由宿主保管，这个标记不发送内容。"),
        "no_marker": Words("Tapster 不认识这个标记。", "约定里的标记"),
        "repeated": Words("它所标记的内容前面已经放过。", "由它最先要求"),
        "no_room": Words("它在消息中的位置太旧，上下文放不下。", "更小的深度或更大的上下文"),
    },
}
