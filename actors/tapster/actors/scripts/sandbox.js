// The world of one template: its data, its helpers, and a queue of lookups for the host. Gives the host's one handle: a function of (name, ...).
(settings => {
  "use strict";
  const { parse, stringify } = JSON;
  const { freeze, keys, prototype: objectPrototype } = Object;
  const { isArray } = Array;
  const own = Function.prototype.call.bind(objectPrototype.hasOwnProperty);
  const test = Function.prototype.call.bind(RegExp.prototype.test);
  const replace = Function.prototype.call.bind(String.prototype.replace);
  const join = Function.prototype.call.bind(Array.prototype.join);
  const toString = String, NativeError = Error, NativeTypeError = TypeError, NativePromise = Promise;
  const then = Function.prototype.call.bind(Promise.prototype.then);
  const NativeRegExp = RegExp, NativeDate = Date;
  const compile = Object.getPrototypeOf(async function () {}).constructor;
  const given = parse(settings);

  const deepFreeze = value => {
    if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
      freeze(value);
      for (const key of keys(value)) deepFreeze(value[key]);
    }
    return value;
  };
  const variables = deepFreeze(parse(given.variables));
  const refuse = what => { throw new NativeError("Unsupported template capability: " + what); };

  // The clock stands still and the dice are seeded: the same input gives the same text.
  let state = given.seed >>> 0 || 1;
  Math.random = () => {
    state = (state + 0x6D2B79F5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  const now = given.clock;
  globalThis.Date = new Proxy(NativeDate, {
    construct: (target, values, self) => Reflect.construct(target, values.length ? values : [now], self),
    apply: target => new target(now).toString(),
    get: (target, key) => key === "now" ? () => now : target[key],
  });
  NativeDate.prototype.constructor = globalThis.Date;
  for (const name of ["Atomics", "SharedArrayBuffer", "performance", "queueMicrotask", "WeakRef",
    "FinalizationRegistry"]) delete globalThis[name];

  const parts = [];
  let size = 0, overflow = false;
  const put = text => {
    size += text.length;
    if (size > given.output) {
      overflow = true;
      throw new NativeError("the output is too long");
    }
    parts[parts.length] = text;
  };
  const text = value => value === undefined || value === null ? "" : toString(value);
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;" };
  const escape = value => replace(value, /[&<>"']/g, found => entities[found]);
  const later = [];
  // An answer that wasn't awaited is put in when it is there.
  const output = (value, finish) => {
    if (!(value instanceof NativePromise)) return put(finish(text(value)));
    const place = parts.length;
    parts[place] = "";
    later[later.length] = then(value, found => {
      const done = finish(text(found));
      size += done.length;
      if (size > given.output) overflow = true; else parts[place] = done;
    });
  };

  const unsafe = { __proto__: null, ["__proto__"]: 1, prototype: 1, constructor: 1 };
  const readPath = path => {
    const found = [];
    const part = /([^.[\]]+)|\[\s*(?:(\d+)|"((?:[^"\\]|\\[^])*)"|'((?:[^'\\]|\\[^])*)')\s*\]/y;
    let at = 0;
    while (at < path.length) {
      const dotted = path[at] === ".";
      if (dotted && !found.length) throw new NativeError("Invalid variable path");
      if (dotted) at++;
      part.lastIndex = at;
      const match = part.exec(path);
      if (!match) throw new NativeError("Invalid variable path");
      const named = match[1] !== undefined;
      if ((dotted && !named) || (named && found.length && !dotted)) throw new NativeError("Invalid variable path");
      const quoted = match[3] !== undefined ? match[3] : match[4];
      const key = quoted !== undefined ? replace(quoted, /\\([^])/g, "$1") : match[1] || match[2];
      if (key in unsafe) throw new NativeError("Unsafe variable path");
      found[found.length] = key;
      at = part.lastIndex;
    }
    return found;
  };
  const getvar = (path, options) => {
    if (typeof options === "string") options = { scope: options };
    const wanted = options === undefined || options === null ? {} : options;
    for (const key of keys(wanted)) {
      if (key !== "defaults" && key !== "clone" && key !== "scope") refuse("getvar option " + key);
    }
    if (wanted.scope !== undefined && wanted.scope !== "cache") refuse("getvar scope " + text(wanted.scope));
    let value = variables;
    for (const key of readPath(text(path))) {
      value = typeof value === "object" && value !== null && own(value, key) ? value[key] : undefined;
    }
    if (value === undefined) return wanted.defaults;
    return wanted.clone && typeof value === "object" && value !== null ? parse(stringify(value)) : value;
  };

  const waiting = [];
  const open = {};
  let lookups = 0, fault = "";
  const fail = (code, message) => {
    fault = fault || code;
    throw new NativeTypeError(message);
  };
  const scalar = value => {
    if (value instanceof NativeRegExp) return { pattern: value.source, flags: value.flags };
    if (value === null || ["string", "boolean"].includes(typeof value) || Number.isFinite(value)) return value;
    return fail("TEMPLATE_DEPENDENCY_INVALID", "a lookup takes text, numbers and patterns");
  };
  const lookup = (helper, most) => (...values) => {
    while (values.length && values[values.length - 1] === undefined) values.length--;
    if (values.length > most) refuse(helper + " data");
    const request = { helper, arguments: values.map(scalar) };
    if (stringify(request).length > given.lookupUnits) {
      fail("TEMPLATE_DEPENDENCY_INVALID", "a lookup is too long");
    }
    if (++lookups > given.lookups) fail("TEMPLATE_DEPENDENCY_LIMIT", "the template looks up too much");
    return new NativePromise(resolve => {
      open[lookups] = resolve;
      waiting[waiting.length] = { id: lookups, ...request };
    });
  };
  const getwi = lookup("getwi", 2), getpreset = lookup("getpreset", 1), getchar = lookup("getchar", 1);
  const names = {
    __text: put,
    __raw: value => output(value, found => found),
    __escaped: value => output(value, escape),
    print: (...values) => { for (const value of values) output(value, found => found); },
    variables, getvar, getwi, getpreset, getchar,
    getWorldInfo: getwi, getPresetPrompt: getpreset, getChara: getchar,
    setvar: () => refuse("setvar"), execute: () => refuse("execute"),
  };
  const result = { state: "running", stack: "", message: "" };
  const ended = error => {
    result.state = "failed";
    try {
      result.message = error instanceof NativeError ? toString(error.name) + ": " + toString(error.message) : text(error);
      result.stack = error instanceof NativeError ? toString(error.stack) : "";
    } catch {
      result.message = "an error that can't be printed";
    }
  };
  const handles = {
    start: body => {
      let main;
      try {
        main = compile(...keys(names), body);
      } catch (error) {
        ended(error);
        return;
      }
      const all = then(main(...keys(names).map(name => names[name])), () => NativePromise.all(later));
      then(all, () => { result.state = "done"; }, ended);
    },
    take: () => {
      const taken = stringify(waiting);
      waiting.length = 0;
      return taken;
    },
    answer: (id, value) => {
      const resolve = open[id];
      delete open[id];
      resolve(parse(value));
    },
    state: () => stringify({ ...result, overflow, fault }),
    output: () => stringify(join(parts, "")),
  };
  return (name, first, second) => handles[name](first, second);
})
