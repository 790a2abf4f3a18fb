"""Every limit of the engine in one place, with its unit in the name or beside it.

Source: the section named beside each group.
"""

KIB = 1024
MIB = 1024 * KIB

# Pending input and activation: spec/activation §3.1, §3.2, §4, §5.1, §5.2, §5.4, §7. Characters are UTF-16 code units.
DEFAULT_SCAN_CHARACTERS = 65_536
MAX_SCAN_CHARACTERS = 1_048_576
DEFAULT_SCAN_MESSAGES = 128
MAX_SCAN_MESSAGES = 1_024
DEFAULT_QUEUED_CHARACTERS = 262_144
MAX_QUEUED_CHARACTERS = 1_048_576
DEFAULT_QUEUED_MESSAGES = 256
MAX_QUEUED_MESSAGES = 1_024
KEPT_CLAIM_SEQS = 4
MAX_RUNTIME_ENTRIES = 10_000
MAX_KEY_REGEX_CHARACTERS = 256
MAX_ROLL = 0.999999999
MAX_BOUND_WORLD_BOOKS = 100

# Trace records (spec/trace §10)
TRACE_MAX_RECORDS = 256
TRACE_RECORD_BYTES = 2 * MIB
TRACE_RECORD_BYTES_CAP = 4 * MIB
TRACE_TOTAL_BYTES = 16 * MIB
TRACE_TOTAL_BYTES_CAP = 32 * MIB
TRACE_OPTION_MIN_BYTES = 4096
TRACE_READ_BYTES = 32 * MIB
TRACE_TOTAL_RESERVE_BYTES = 256
"""Bytes of the whole file that one record may never take."""

# Audit records of v1 (spec/trace §9); lengths are UTF-16 units
AUDIT_MAX_SESSIONS = 128
AUDIT_MAX_RECORDS_PER_SESSION = 128
AUDIT_RECORD_BYTES = 64 * KIB
AUDIT_TOTAL_BYTES = 8 * MIB
AUDIT_READ_BYTES = 16 * MIB
AUDIT_MAX_IDS = 200
AUDIT_MAX_WORLD_BOOK_RESOURCES = 32
AUDIT_MAX_WORLD_BOOKS = 16
AUDIT_MAX_DECISIONS = 128
AUDIT_MAX_KEYS = 16
AUDIT_MAX_DIAGNOSTICS = 64
AUDIT_MAX_CLAIMS = 4
AUDIT_ID_UNITS = 200
AUDIT_LIST_ITEM_UNITS = 160
AUDIT_ENTRY_ID_UNITS = 120
AUDIT_ENTRY_NAME_UNITS = 160
AUDIT_REASON_UNITS = 120
AUDIT_DIAGNOSTIC_CODE_UNITS = 120
AUDIT_DIAGNOSTIC_SEVERITY_UNITS = 24
AUDIT_DIAGNOSTIC_MESSAGE_UNITS = 320

# Names and texts of resources, in UTF-16 code units (spec/resources §2-§5).
RESOURCE_NAME_UNITS = 200
CARD_FILE_NAME_UNITS = 255
EXPORT_FILE_NAME_UNITS = 250
REASONING_EFFORT_UNITS = 100
STOP_STRINGS = 16
PERSONA_DESCRIPTION_UNITS = 100_000

# Files of resources, in bytes (spec/resources §3.5, §5, §7, §9).
PRESET_BYTES = 2 * MIB
CARD_BYTES = 32 * MIB
CARD_DOCUMENT_BYTES = 16 * MIB
EMBEDDED_BOOK_BYTES = 4 * MIB
WORLD_BOOK_BYTES = 4 * MIB
PERSONA_BYTES = 256 * KIB

# PNG card container (spec/resources §4).
PNG_CHUNKS = 10_000
PNG_METADATA_BYTES = 2 * MIB

# Structural guard of world books (spec/resources §6.2).
WORLD_BOOK_ENTRIES = 10_000
WORLD_BOOK_DEPTH = 32
WORLD_BOOK_NODES = 100_000
WORLD_BOOK_STRING_UNITS = 1_048_576
WORLD_BOOK_KEY_UNITS = 1_024

# Macros of the tavern contract (spec/loader §9.1)
TAVERN_MACRO_MAX_PASSES = 5
TAVERN_MACRO_MAX_DICE = 100
MACRO_OUTPUT_UNITS = 4 * MIB
"""What the macros of one text may insert, and what its variables may hold: twice the largest profile there can be."""

# Profile and parameter admission (spec/loader §8.5, §10); the message is cut in UTF-16 units
PROFILE_BYTES_DEFAULT = 524_288
PROFILE_BYTES_HARD = 2_097_152
PROFILE_MAX_LORE_ENTRIES = 4_096
PROFILE_LORE_INPUT_FACTOR = 2
ADMISSION_MESSAGE_UNITS = 8_192
ADMISSION_MAX_RETRIES = 4

# Selections (spec/loader §2); ids are UTF-16 units
SELECTION_MAX_ID_LENGTH = 200
SELECTION_MAX_BOOKS = 100
SELECTION_SESSIONS_DEFAULT = 2_048
SELECTION_SESSIONS_HARD = 4_096
SELECTION_BYTES_DEFAULT = 4 * MIB
SELECTION_BYTES_HARD = 4 * MIB
SELECTION_FILE_BYTES = 8 * MIB

# Relations to world books (spec/loader §5)
USER_RELATIONS_DEFAULT = 2_048
USER_RELATIONS_HARD = 4_096
USER_RELATION_BYTES_DEFAULT = 2 * MIB
USER_RELATION_BYTES_HARD = 4 * MIB
USER_RELATION_FILE_BYTES = 8 * MIB
RESOURCE_RELATIONS_DEFAULT = 4_096
RESOURCE_RELATIONS_HARD = 8_192
RESOURCE_RELATION_BYTES_DEFAULT = 4 * MIB
RESOURCE_RELATION_BYTES_HARD = 8 * MIB
RESOURCE_RELATION_FILE_BYTES = 16 * MIB

# Session templates (spec/loader §13); the name in UTF-16 units and in bytes
TEMPLATES_DEFAULT = 100
TEMPLATES_HARD = 200
TEMPLATE_BYTES_DEFAULT = 512 * KIB
TEMPLATE_BYTES_HARD = 2 * MIB
TEMPLATE_FILE_BYTES = 4 * MIB
TEMPLATE_NAME_UNITS = 120
TEMPLATE_NAME_BYTES = 480
TEMPLATE_BODY_BYTES = 64 * KIB

# Import context and RP policy text (spec/loader §11.1, §12.2)
IMPORT_CONTEXT_MAX_SEQS = 4
RP_POLICY_BYTES = 16 * KIB

# Regular expressions and scripts (spec/text_and_mvu B3, style §6)
REGEX_FAST_PATTERN_UNITS = 4096
REGEX_FAST_REPEAT = 200
"""Rounds of a counted loop that the linear engine unrolls."""
REGEX_FAST_MEMORY_BYTES = 2 * MIB
REGEX_FAST_SCAN_UNITS = 32 * MIB
"""Bytes that the searches for all matches may look ahead over before the time-limited engine takes over."""
REGEX_BUDGET_MS = 100
"""CPU milliseconds of one pattern on one text."""
REGEX_MEMORY_BYTES = 64 * MIB
REGEX_STACK_BYTES = 256 * KIB
REGEX_OUTPUT_UNITS = 8 * MIB
REGEX_MATCHES = 200_000
REGEX_CACHED_PATTERNS = 512

# Keyword index: what one part and one pass may hold, so that no step holds the interpreter long (style §6).
MAX_INDEXED_KEY_CHARACTERS = 256
PATTERNS_A_PART = 5_000
MAX_HITS_A_PASS = 250_000
MAX_HITS_A_SCAN = 250_000
MAX_HITS_A_CHARACTER = 4

# Assembler (spec/assembler §3, §6, §9, §10, §12, §15; spec/history_policy §1, §7)
ASSEMBLY_RULES = 128
ASSEMBLY_NAME_UNITS = 200
ASSEMBLY_RULE_TEXT_UNITS = 512 * KIB
ASSEMBLY_DEPTH = 10_000
LAYOUT_OVERRIDES = 128
LAYOUT_OVERRIDE_ID_UNITS = 4096
LAYOUT_PRIORITY = 128
LAYOUT_POSITIONS = 512
SOURCE_POSITIONS = 128
SOURCE_BLOCKS = 10_000
REFERENCE_CHAIN = 200
"""References nested in references; ours, so that a hostile source can't exhaust the stack."""
SOURCE_OUTPUT_BYTES = 8 * MIB
ASSEMBLY_CONTENT_BYTES = 2 * MIB
SYSTEM_PROJECTION_BYTES = 2 * MIB
ASSEMBLY_STORE_BYTES = 8 * MIB
HISTORY_RULES = 100
HISTORY_DELIMITER_UNITS = 256
HISTORY_SESSION_ID_UNITS = 512
ENTRIES_A_PART = 1_000
SCAN_AUDIT_MISSES = 256
"""Entries that nothing touched, in the audit of one request in mode ``sillytavern``; explaining names them all."""
MAX_SCAN_SETTING = 1_000_000
"""Of any number among a session's scan settings; ours."""

# Embedded host: spec/dsh_host §8 (built-in retry); design §4 rule 15 (subscribers)
HOST_RETRIES = 5
HOST_RETRY_FIRST_MS = 500
HOST_RETRY_MAX_MS = 10_000
HOST_RETRY_JITTER = 0.1
HOST_SUBSCRIBER_SLOTS = 256
HOST_MAX_PENDING_MESSAGES = 1_024
"""Messages that may wait in both inbox queues; a person never queues so many, a broken client might."""

# Macros of the sillytavern dialect
ST_MACRO_MAX_NESTING = 60
"""Macros inside macros; deeper ones stay text."""
ST_MACRO_MAX_SCOPES = 40
"""Scopes inside scopes and arguments; the tags of deeper ones stand alone."""
ST_MACRO_MAX_DICE = 10_000
ST_MACRO_MAX_REPEAT = 10_000
"""Line breaks or blanks that one macro may print."""
MAX_SCAN_DEPTH = 1_000

# Files before they are parsed: what costs bounded time and memory (docs/formats.md "Limits").
JSON_DEPTH = 256
JSON_VALUES = 250_000
PNG_INFLATED_BYTES = 8 * MIB
MACROS_SCANNED = 100_000
ZIP_MEMBERS = 4_096
ZIP_CARD_BYTES = 16 * MIB
CHAT_BYTES = 64 * MIB
CHAT_LINES = 50_000
CHAT_VALUES = 400_000

# Global settings files (spec/http §5.4)
UI_SETTINGS_BYTES = 1024
CONVERSATION_SETTINGS_BYTES = 512
CHROME_BYTES = 1024

# MVU variables (spec/text_and_mvu C1-C4)
MVU_MAX_NODES = 100_000
MVU_MAX_DEPTH = 64
MVU_MAX_BYTES = 2 * MIB
MVU_YAML_BYTES = 1 * MIB
MVU_REPLY_BYTES = 1 * MIB
MVU_MAX_COMMANDS = 1000
MVU_PATH_UNITS = 2000
MVU_PATH_PARTS = 64
MVU_ARITHMETIC_UNITS = 200
MVU_JSON5_UNITS = 16 * KIB
"""Longer values must be strict JSON, which is read a hundred times faster."""

# Templates (spec/text_and_mvu B3)
TEMPLATE_SOURCE_UNITS = 131_072
TEMPLATE_BUDGET_MS = 75
"""CPU milliseconds of one run, compiling included."""
TEMPLATE_MAX_JOBS = 10_000
"""Promise jobs of one run; the reference stops at 1,000 interrupts, here the time is measured across all of them."""
TEMPLATE_MEMORY_BYTES = 16 * MIB
TEMPLATE_STACK_BYTES = 256 * KIB
TEMPLATE_OUTPUT_UNITS = 524_288
TEMPLATE_INPUT_BYTES = 2 * MIB
TEMPLATE_MAX_LOOKUPS = 512
TEMPLATE_LOOKUP_UNITS = 4_096
TEMPLATE_MAX_ARGUMENTS = 2
TEMPLATE_MESSAGE_UNITS = 300
PROMPT_TEMPLATE_NAME_UNITS = 200
PROMPT_TEMPLATE_ID_UNITS = 100
JSON_ESCAPES = 2_000_000
PRESET_PROMPTS = 10_000
MVU_SCHEMA_SOURCE_UNITS = 128 * KIB
MVU_SCHEMA_STEPS = 10_000
MVU_SCHEMA_DEPTH = 64
REGEX_REQUEST_BUDGET_MS = 500
"""CPU milliseconds of all time-limited patterns of one request together."""
REGEX_REMEMBERED_OFFENDERS = 1024
REGEX_OFFENDER_SECONDS = 600
MVU_OPERATION_UNITS = 200
