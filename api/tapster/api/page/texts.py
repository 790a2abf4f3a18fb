"""Every word of the page, in English and Chinese."""

from collections.abc import Mapping
from typing import Final

from .file_words import FILE_WORDS
from .reasons import REASONS

LOCALES: Final = ("zh-CN", "en")

_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "title": ("Tapster", "Tapster 酒馆运行时"),
    "skip": ("Skip to the content", "跳到正文"),
    "navigation": ("Pages", "页面"),
    "language": ("中文", "English"),
    "offline": (
        "The connection to Tapster is lost. Is it still running? Reload the page if it doesn't come back.",
        "与 Tapster 的连接已断开。请确认它仍在运行；若未自动恢复，请刷新页面。",
    ),
    "pages": ("Pages of the list", "列表分页"),
    "previous": ("Previous", "上一页"),
    "next": ("Next", "下一页"),
    # Library
    "library": ("Library", "资源库"),
    "sessions": ("Sessions", "会话"),
    "runtime": ("Runtime", "运行状态"),
    "presets": ("Presets", "预设"),
    "characters": ("Characters", "角色卡"),
    "world_books": ("World books", "世界书"),
    "users": ("Personas", "用户人设"),
    "one_presets": ("Preset", "预设"),
    "one_characters": ("Character", "角色卡"),
    "one_users": ("Persona", "用户人设"),
    "new_presets": ("New preset", "新建预设"),
    "new_characters": ("New character", "新建角色卡"),
    "new_world_books": ("New world book", "新建世界书"),
    "new_users": ("New persona", "新建用户人设"),
    "import": ("Import files", "导入文件"),
    "import_button": ("Import", "导入"),
    "import_hint": (
        "Cards (PNG, JSON, CHARX), presets, world books and personas; several at once.",
        "角色卡（PNG、JSON、CHARX）、预设、世界书、人设，可一次选多个。",
    ),
    "imported": ("Imported", "已导入"),
    "refused": ("Not imported", "未导入"),
    "no_files": ("No file was chosen.", "没有选择文件。"),
    "notes": ("notes", "条说明"),
    "nothing": ("Nothing here yet.", "这里还没有内容。"),
    "entries_left": (
        "more entries aren't listed here; “tapster session preview” and “tapster explain” list all.",
        "个条目未在此列出；“tapster session preview” 与 “tapster explain” 会列出全部。",
    ),
    "entries_count": ("entries", "个条目"),
    "prompts_count": ("prompts", "个提示词"),
    "create": ("Create", "创建"),
    "delete": ("Delete", "删除"),
    "deleted": ("Deleted.", "已删除。"),
    "delete_sure": (
        "Delete it, and every use of it in sessions and relations?",
        "确定删除吗？会话与关联里对它的使用也会一并清除。",
    ),
    "export": ("Export", "导出"),
    "save": ("Save", "保存"),
    "saved": ("Saved. Later requests use it.", "已保存，之后的请求会使用它。"),
    # Editing
    "name": ("Name", "名称"),
    "description": ("Description", "描述"),
    "personality": ("Personality", "性格"),
    "scenario": ("Scenario", "场景"),
    "firstMessage": ("First message", "开场白"),
    "messageExample": ("Example messages", "对话示例"),
    "systemPrompt": ("System prompt", "系统提示词"),
    "postHistoryInstructions": ("Post-history instructions", "历史后指令"),
    "greeting": ("Greeting", "开场白"),
    "temperature": ("Temperature", "温度"),
    "max_tokens": ("Most tokens of a reply", "回复词元上限"),
    "prompts": ("Prompts that are switched on", "启用的提示词"),
    "text": ("Text", "内容"),
    "entry": ("Entry", "条目"),
    "title_of_entry": ("Title", "标题"),
    "keys": ("Keys, one a line", "主关键词，每行一个"),
    "secondary_keys": ("Secondary keys, one a line", "次关键词，每行一个"),
    "content": ("Content", "内容"),
    "disabled": ("switched off", "已停用"),
    "constant": ("always active", "常驻条目"),
    "enabled": ("switched on", "启用"),
    "add_entry": ("Add an entry", "添加条目"),
    "delete_entry_sure": ("Delete this entry?", "确定删除这个条目吗？"),
    # Sessions
    "new_session": ("New session", "新建会话"),
    "no_sessions": (
        "No session yet. Begin one, bind a character to it, and say something.",
        "还没有会话。新建一个，绑定角色卡，然后开始对话。",
    ),
    "no_card": ("No character", "未绑定角色卡"),
    "session": ("Session", "会话"),
    "status_running": ("answering", "正在回复"),
    "status_idle": ("ready", "就绪"),
    "status_asleep": ("asleep", "休眠"),
    "bindings": ("Bindings", "绑定"),
    "mode": ("How world books are activated", "世界书激活方式"),
    "mode_tavern": ("as the Tavern contract has it", "按 Tavern 约定"),
    "mode_sillytavern": ("as SillyTavern does it", "按 SillyTavern 的方式"),
    "none": ("none", "无"),
    "bound": ("Bound. The next request uses it.", "已绑定，下一次请求会使用它。"),
    "chat": ("Chat", "对话"),
    "chat_hint": (
        "Ctrl+Enter sends. A message sent during a reply is taken up at its next step.",
        "按 Ctrl+Enter 发送。回复进行中发送的消息会在下一步被采纳。",
    ),
    "earlier": ("Show earlier messages", "显示更早的消息"),
    "no_messages": ("No message yet.", "还没有消息。"),
    "role_user": ("You", "你"),
    "role_assistant": ("Reply", "回复"),
    "queued": ("waiting", "等待采纳"),
    "end_aborted": ("Stopped; what was said so far is kept.", "已停止，已生成的内容会保留。"),
    "end_failed": ("The request failed.", "请求失败。"),
    "send": ("Send", "发送"),
    "cancel": ("Stop", "停止"),
    "message": ("Message", "消息"),
    "preview": ("What would be sent", "将要发送的内容"),
    "preview_hint": (
        "With the draft above, if there is one. Nothing is sent or recorded.",
        "包含上面的草稿（如有）。不会发送，也不会记录。",
    ),
    "preview_draft": ("Assembled with the draft.", "已包含草稿进行组装。"),
    "preview_no_draft": ("Assembled without a draft.", "未包含草稿。"),
    # Traces
    "traces": ("Traces", "发送记录"),
    "trace": ("Trace", "发送记录"),
    "traces_hint": (
        "One record for each request: what was sent, and why. The newest is first.",
        "每次请求一条记录：发送了什么，以及原因。最新的在前。",
    ),
    "no_traces": ("Nothing was sent yet.", "还没有发送过请求。"),
    "trace_assembled": ("assembled", "已组装"),
    "trace_request-observed": ("sent", "已发送"),
    "trace_request-unconfirmed": ("not confirmed", "未确认"),
    "trace_superseded-unconfirmed": ("superseded", "已被取代"),
    "trace_unloaded-unconfirmed": ("session ended before it was sent", "发送前会话已结束"),
    "trace_request-failed-before-observation": ("failed before it was sent", "发送前失败"),
    "trace_assembly-or-preparation-failed": ("could not be assembled", "组装失败"),
    "history": ("In the history", "与历史一致"),
    "verified": ("verified", "已核对"),
    "verified_all": (
        "Every text was found in the session's own history, and its hash matches.",
        "所有文本都在会话自身的历史中找到，且哈希一致。",
    ),
    "unverified": ("not verified", "未能核对"),
    "sections": ("Sections", "提示词分段"),
    "no_sections": (
        "Nothing would be added to the prompt; bind something first.",
        "没有要加入提示词的内容，请先绑定资源。",
    ),
    "contexts": ("Contexts", "运行时上下文"),
    "section_rp:policy": ("Roleplay rules", "角色扮演规则"),
    "kind_preset": ("Preset", "预设"),
    "kind_character": ("Character", "角色卡"),
    "kind_user": ("Persona", "用户人设"),
    "kind_worldbook": ("World book", "世界书"),
    "entries": ("World-book entries", "世界书条目"),
    "decision": ("Decision", "结果"),
    "included": ("in", "已注入"),
    "rejected": ("out", "未注入"),
    "reason": ("Reason", "原因"),
    "matched_keys": ("Matched keys", "命中的关键词"),
    "budget": ("Budget", "预算"),
    "parameters": ("Parameters", "参数"),
    "diagnostics": ("Diagnostics", "诊断"),
    "status": ("Status", "状态"),
    "turn": ("Turn", "轮次"),
    "time": ("Time", "时间"),
    "model": ("Model", "模型"),
    "size": ("characters", "字符"),
    # Errors, by code or status
    "error_title": ("That didn't work", "操作未完成"),
    "error_400": ("The input can't be used. Correct it and try again.", "输入无法使用，请修改后重试。"),
    "error_401": ("This server asks for its token.", "此服务器需要令牌。"),
    "error_403": (
        "This isn't allowed from here. Open the page on its own address.",
        "不允许从这里访问，请用本服务自己的地址打开页面。",
    ),
    "error_404": ("There is nothing here; it may have been deleted.", "这里没有内容，可能已被删除。"),
    "error_405": ("This address doesn't take that.", "该地址不支持此操作。"),
    "error_409": (
        "It is in use or has changed. Wait for the reply to end, or stop it; then load the page again and repeat.",
        "它正在使用中或已被修改。请等待回复结束（或停止回复），刷新页面后重试。",
    ),
    "error_413": ("That is too large. Send less at once.", "内容过大，请减少单次提交的内容。"),
    "error_500": ("Something failed inside Tapster; its log says more.", "Tapster 内部出错，详情见服务日志。"),
    "error_503": ("Tapster is busy or stopping. Try again in a moment.", "Tapster 繁忙或正在停止，请稍后重试。"),
    "error_other": ("The request was refused.", "请求被拒绝。"),
    "error_STORE_COMMIT_FAILED": (
        "Nothing was saved: the disk refused it. Check the data folder and its free space, then try again.",
        "没有保存：磁盘拒绝写入。请检查数据目录和剩余空间后重试。",
    ),
    "error_NO_ADAPTER": (
        "No model server is configured: set TAPSTER_PROVIDER_URL and TAPSTER_MODEL, then start Tapster again.",
        "尚未配置模型服务：请设置 TAPSTER_PROVIDER_URL 与 TAPSTER_MODEL，然后重新启动 Tapster。",
    ),
    "token": ("Token", "令牌"),
    "enter": ("Enter", "进入"),
}


class Texts:
    """The words of one language; an unknown key is shown as it is."""

    def __init__(self, locale: str) -> None:
        self.locale = locale if locale in LOCALES else LOCALES[0]
        self._index = 0 if self.locale == "en" else 1

    def __call__(self, key: str) -> str:
        """The word for a key."""
        words = _find(key)
        return key if words is None else words[self._index]

    def has(self, key: str) -> bool:
        """Whether there is a word for a key."""
        return _find(key) is not None

    def first(self, *keys: str) -> str:
        """The first of several words that there is."""
        return self(next((key for key in keys if self.has(key)), keys[-1]))

    def of_file(self, slug: str | None) -> str | None:
        """What a check of a file found, where this language needs more than the message."""
        return None if slug is None or self.locale == "en" else FILE_WORDS.get(slug)

    @property
    def other(self) -> str:
        """The locale that the language switch leads to."""
        return "en" if self.locale != "en" else "zh-CN"


def _find(key: str) -> tuple[str, str] | None:
    return _WORDS.get(key) or REASONS.get(key)
