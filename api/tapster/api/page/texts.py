"""Every word of the page, in English and Chinese."""

from collections.abc import Mapping
from typing import Final

LOCALES: Final = ("zh-CN", "en")

_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "title": ("Tapster", "Tapster 酒馆运行时"),
    "library": ("Library", "资源库"),
    "sessions": ("Sessions", "会话"),
    "presets": ("Presets", "预设"),
    "characters": ("Characters", "角色卡"),
    "world_books": ("World books", "世界书"),
    "users": ("Personas", "用户人设"),
    "import": ("Import files", "导入文件"),
    "import_hint": (
        "Cards (PNG, JSON, CHARX), presets, world books and personas; several at once.",
        "角色卡（PNG、JSON、CHARX）、预设、世界书、人设，可一次选多个。",
    ),
    "imported": ("Imported", "已导入"),
    "refused": ("Refused", "未导入"),
    "nothing": ("Nothing here yet.", "这里还没有内容。"),
    "delete": ("Delete", "删除"),
    "delete_sure": (
        "Delete it, and every use of it in sessions and relations?",
        "确定删除吗？会话与关联里对它的使用也会一并清除。",
    ),
    "export": ("Export", "导出"),
    "new_session": ("New session", "新建会话"),
    "session": ("Session", "会话"),
    "bindings": ("Bindings", "绑定"),
    "none": ("none", "无"),
    "save": ("Save", "保存"),
    "saved": ("Saved. Later requests use it.", "已保存，之后的请求会使用它。"),
    "chat": ("Chat", "对话"),
    "send": ("Send", "发送"),
    "cancel": ("Stop", "停止"),
    "message": ("Message", "消息"),
    "preview": ("What would be sent", "将要发送的内容"),
    "preview_hint": (
        "With the draft above, if there is one. Nothing is sent or recorded.",
        "包含上面的草稿（如有）。不会发送，也不会记录。",
    ),
    "traces": ("Traces", "发送记录"),
    "trace": ("Trace", "发送记录"),
    "verified": ("verified against the history", "已与历史核对"),
    "unverified": ("not verified", "未能核对"),
    "sections": ("Sections", "提示词分段"),
    "contexts": ("Contexts", "运行时上下文"),
    "entries": ("World-book entries", "世界书条目"),
    "included": ("in", "已注入"),
    "rejected": ("out", "未注入"),
    "reason": ("Reason", "原因"),
    "keys": ("Matched keys", "命中的关键词"),
    "budget": ("Budget", "预算"),
    "parameters": ("Parameters", "参数"),
    "diagnostics": ("Diagnostics", "诊断"),
    "status": ("Status", "状态"),
    "turn": ("Turn", "轮次"),
    "time": ("Time", "时间"),
    "model": ("Model", "模型"),
    "size": ("characters", "字符"),
    "language": ("中文", "English"),
    "draft_empty": ("(no message yet)", "（还没有消息）"),
    "constant": ("always active", "常驻条目"),
    "vector-match": ("confirmed by a semantic match", "语义匹配确认"),
    "primary-key-match": ("a key matched", "主关键词命中"),
    "primary-key-miss": ("no key is in the searched text", "搜索文本中没有主关键词"),
    "secondary-and_any-match": ("a key and a secondary key matched", "主关键词与次关键词命中"),
    "secondary-and_any-miss": ("a key matched, but no secondary key", "主关键词命中，但没有次关键词"),
    "secondary-and_all-match": ("a key and every secondary key matched", "主关键词与全部次关键词命中"),
    "secondary-and_all-miss": ("a secondary key is missing", "缺少某个次关键词"),
    "secondary-not_any-match": ("a key matched and no secondary key did", "主关键词命中，且没有次关键词"),
    "secondary-not_any-miss": ("a secondary key that must be absent is there", "出现了应当缺席的次关键词"),
    "secondary-not_all-match": ("a key matched and a secondary key is missing", "主关键词命中，且次关键词不全"),
    "secondary-not_all-miss": ("every secondary key is there", "次关键词全部出现"),
    "disabled": ("switched off", "已停用"),
    "inclusion-group-loser": ("another entry of its group won", "同组的另一条目胜出"),
    "probability-failed": ("its chance failed", "概率未通过"),
    "budget-exceeded": ("over the token budget", "超出词元预算"),
    "empty-content": ("it has no text", "没有内容"),
    "outlet-unsupported": ("outlets aren't placed in this mode", "此模式不放置 outlet"),
    "external-vector-match-required": ("needs a semantic match", "需要语义匹配"),
    "invalid-entry": ("the entry isn't an object", "条目格式错误"),
}


class Texts:
    """The words of one language; an unknown key is shown as it is."""

    def __init__(self, locale: str) -> None:
        self.locale = locale if locale in LOCALES else LOCALES[0]
        self._index = 0 if self.locale == "en" else 1

    def __call__(self, key: str) -> str:
        """The word for a key."""
        words = _WORDS.get(key)
        return key if words is None else words[self._index]

    @property
    def other(self) -> str:
        """The locale that the language switch leads to."""
        return "en" if self.locale != "en" else "zh-CN"
