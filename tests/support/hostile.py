"""Patterns and templates made to cost for ever, each of which must be answered within its budget."""

TEXT = "a" * 50 + " " + "ab" * 30 + " " + "1" * 40 + " " + "x" * 40 + "!"
"""A text on which every pattern below backtracks without end."""

PATTERNS: tuple[str, ...] = (
    r"(a+)+(?=\d)$",
    r"(a|a)*(?=z)",
    r"(a|aa)+(?=z)$",
    r"(.*)*z(?=z)",
    r"(.*a){20}(?=z)",
    r"([a-z]+)*(?=\d\d)$",
    r"^(\w+\s?)*(?=#)$",
    r"(x+x+)+y(?=z)",
    r"(a*)*(?=\d)\1c",
    r"((a*)*)*(?=c)$",
    r"(?:a?){40}a{60}(?=z)",
    r"(a*?a*?)*(?=b)$",
    r"(\w*\w*\w*\w*\w*\w*)(?=~)$",
    r"(.+)+\1+(?=~)",
    r"^(?:(?:a|b|ab)+)+(?=~)$",
    r"(?<!x)(?:\d+\.?)+(?=~)$",
    r"(?:.*?,?)+?(?=~)$",
    r"(a{1,30}){1,30}(?=b)$",
    r"(([^z])+)+(?=z)",
    r"(?:(?:(?:a+)+)+)+(?=b)",
)

TEMPLATES: tuple[str, ...] = (
    "<% for (;;) {} %>",
    "<% while (true) { try { null.x } catch {} } %>",
    "<% async function again() { for (;;) await 0 } await again() %>",
    "<% (function more() { Promise.resolve().then(more) })() %>",
    "<% const kept = []; for (;;) kept.push('x'.repeat(100000)) %>",
    "<% try { for (;;) print('x'.repeat(1000)) } catch {} %>",
    "<% /(a+)+$/.test('a'.repeat(60) + 'b') %>",
    "<% await new Promise(() => {}) %>",
    "<% 'x'.repeat(1000000).split('').sort(() => Math.random() - 0.5).join('').match(/(x+x+)+y/) %>",
    "<% for (let i = 0; ; i++) await getwi('entry ' + i) %>",
)
