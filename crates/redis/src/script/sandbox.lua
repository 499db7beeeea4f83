-- What scripts see of Lua, and how they are run. It gets a table of functions of the host and
-- gives a table of functions to it.
--
-- Lua 5.1 has no read-only tables: a protected table is an empty one that reads through to the
-- real one and refuses to be written. The environment of scripts is such a table.
--
-- Functions that may raise an error are the host's own wherever a script may `return` their call:
-- a function of Lua would take the place of the caller's frame, and its line would be lost. The
-- host can't raise a table: it leaves the value in `pending`, and whatever catches errors takes it
-- from there. Errors that end the whole script are not caught.

local host = ...

local error, getmetatable, loadstring = error, getmetatable, loadstring
local next, pairs, pcall, rawget, rawset, select = next, pairs, pcall, rawget, rawset, select
local setfenv, setmetatable, tonumber, tostring = setfenv, setmetatable, tonumber, tostring
local type, unpack, xpcall = type, unpack, xpcall
local assert, gcinfo, ipairs, rawequal, _VERSION = assert, gcinfo, ipairs, rawequal, _VERSION
local coroutine, math, os, string, table = coroutine, math, os, string, table
local resume = coroutine.resume
local concat = table.concat
local aborted, null, pending, tick = host.aborted, host.null, host.pending, host.tick

local READ_ONLY = 'Attempt to modify a readonly table'
-- Results that one call may have; LUAI_MAXCSTACK is 8000.
local RESULTS_MAX = 8000
local BYTECODE = 27

-- Real tables by protected ones.
local protected = setmetatable({}, { __mode = 'k' })

local environment = {}
setfenv(1, environment)

local function refuse()
  error(READ_ONLY, 2)
end

local function protect(real)
  local proxy = setmetatable({}, { __index = real, __newindex = refuse })
  protected[proxy] = real
  return proxy
end

-- The value of an error.
local function real(err)
  if type(err) ~= 'userdata' or err == null then
    return err
  end
  local value = pending[1]
  pending[1] = nil
  if value == nil then
    -- The host's bridge to Lua has complained, of too many arguments for instance.
    value = tostring(err):match('^[^\n]*')
  end
  return value
end

-- Errors that end the script can't be caught.

local function resumed(ok, ...)
  if ok then
    return true, ...
  elseif aborted() then
    error((...), 0)
  end
  return false, real((...))
end

-- Its handler has seen the error already.
local function handled(ok, ...)
  if not ok and aborted() then
    error((...), 0)
  end
  return ok, ...
end

-- As Redis: what is caught of an error table is its message.
local function caught(ok, ...)
  if ok then
    return true, ...
  end
  if aborted() then
    error((...), 0)
  end
  local err = real((...))
  if type(err) == 'table' then
    local message = err.err
    if type(message) == 'string' or type(message) == 'number' then
      return false, message
    end
  end
  return false, err
end

local globals = {
  _VERSION = _VERSION, assert = assert, error = error, gcinfo = gcinfo, ipairs = ipairs,
  next = next, pairs = pairs, rawequal = rawequal, select = select, tonumber = tonumber,
  tostring = tostring, type = type,
}

function globals.pcall(...)
  return caught(pcall(...))
end

function globals.xpcall(f, handler)
  return handled(xpcall(f, function(err)
    if aborted() then
      return err
    end
    return handler(real(err))
  end))
end

function globals.collectgarbage(option)
  if option == 'count' then
    return host.count()
  end
  -- The host collects; what would take long is looked upon as work.
  tick()
  return 0
end

function globals.rawset(t, k, v)
  if protected[t] then
    error(READ_ONLY, 0)
  end
  return rawset(t, k, v)
end

function globals.rawget(t, k)
  return rawget(protected[t] or t, k)
end

function globals.setmetatable(t, meta)
  if protected[t] then
    error(READ_ONLY, 0)
  end
  return setmetatable(t, meta)
end

-- Precompiled code could do anything to the process.
local function compile(text, name)
  if text:byte() == BYTECODE then
    return nil, 'precompiled code can not be loaded'
  end
  return loadstring(text, name)
end

function globals.loadstring(text, name)
  if type(text) == 'number' then
    text = tostring(text)
  elseif type(text) ~= 'string' then
    error("bad argument #1 to 'loadstring' (string expected, got " .. type(text) .. ')', 2)
  end
  return compile(text, name or text)
end

function globals.load(reader, name)
  local pieces, n = {}, 0
  while true do
    local piece = reader()
    if piece == nil or piece == '' then
      break
    end
    if type(piece) ~= 'string' then
      return nil, 'reader function must return a string'
    end
    n = n + 1
    pieces[n] = piece
  end
  return compile(concat(pieces), name or '=(load)')
end

function globals.unpack(t, first, last)
  local from, to = tonumber(first or 1), tonumber(last or type(t) == 'table' and #t)
  if from and to and (to - from >= RESULTS_MAX or from < -2 ^ 31 or to > 2 ^ 31 - 2) then
    error('too many results to unpack', 2)
  end
  if first == nil and last == nil then
    -- Two slots of the stack less.
    return unpack(t)
  end
  return unpack(t, first, last)
end

-- Libraries.

local function copy(from, without)
  local to = {}
  for name, value in pairs(from) do
    if not (without and without[name]) then
      to[name] = value
    end
  end
  return to
end

local strings = copy(string)
for _, name in ipairs { 'find', 'match', 'gsub', 'rep' } do
  strings[name] = host[name]
end

function strings.gmatch(text, pattern)
  local inner, at = host.gmatch, 0
  local function values(next_at, ...)
    at = next_at
    return ...
  end
  return function()
    if at then
      return values(inner(text, pattern, at))
    end
  end
end
strings.gfind = strings.gmatch

-- With a function or a table: calls of the script's functions begin here, not in the host.
local plain_gsub, sub = strings.gsub, string.sub
local function gsub_by(text, pattern, by, most)
  local pieces, n, at, count = {}, 0, 1, 0
  local function take(first, last, ...)
    if not first then
      return false
    end
    local value
    if type(by) == 'function' then
      value = by(...)
    else
      value = by[(...)]
    end
    if not value then
      value = sub(text, first, last)
    elseif type(value) ~= 'string' and type(value) ~= 'number' then
      error('invalid replacement value (a ' .. type(value) .. ')', 4)
    end
    pieces[n + 1], pieces[n + 2] = sub(text, at, first - 1), value
    n, count, at = n + 2, count + 1, last + 1
    if last < first then
      -- Behind an empty match one byte stays as it is.
      n = n + 1
      pieces[n] = sub(text, at, at)
      at = at + 1
    end
    return true
  end
  while count < most and at <= #text + 1 and take(host.search(text, pattern, at - 1)) do
  end
  pieces[n + 1] = sub(text, at)
  return concat(pieces), count
end

function strings.gsub(text, pattern, by, most)
  if type(by) == 'function' or type(by) == 'table' then
    if type(text) == 'number' then
      text = tostring(text)
    end
    local limit = tonumber(most)
    if type(text) == 'string' and (type(pattern) == 'string' or type(pattern) == 'number')
      and (limit or most == nil) then
      local all, count = gsub_by(text, pattern, by, limit or #text + 1)
      return all, count
    end
  end
  return plain_gsub(text, pattern, by, most)
end

local coroutines = copy(coroutine)
function coroutines.resume(...)
  return resumed(resume(...))
end

local maths = copy(math)
maths.random, maths.randomseed = host.random, host.randomseed

local bits = {}
for _, name in ipairs {
  'tobit', 'bnot', 'band', 'bor', 'bxor', 'lshift', 'rshift', 'arshift', 'rol', 'ror', 'bswap',
  'tohex',
} do
  bits[name] = host[name]
end

local json = { null = host.null, _NAME = 'cjson', _VERSION = '2.1.0' }
for _, name in ipairs {
  'encode', 'decode', 'encode_sparse_array', 'encode_max_depth', 'decode_max_depth',
  'encode_number_precision', 'encode_keep_buffer', 'encode_invalid_numbers',
  'decode_invalid_numbers',
} do
  json[name] = host[name]
end

local msgpack = {
  _NAME = 'cmsgpack', _VERSION = 'lua-cmsgpack 0.4.0',
  pack = host.msgpack, unpack = host.msgunpack,
  unpack_one = host.msgunpack_one, unpack_limit = host.msgunpack_limit,
}
local structs = {
  pack = host.structpack, unpack = host.structunpack, size = host.structsize,
}

-- The table `redis`.

local redis = {
  LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
  REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
  REDIS_VERSION = host.version, REDIS_VERSION_NUM = host.version_number,
}
for _, name in ipairs { 'call', 'pcall', 'sha1hex', 'setresp', 'set_repl', 'acl_check_cmd', 'log' } do
  redis[name] = host[name]
end


local function code_and_text(message)
  local code, text = message:match('^%-?(%S*) (.*)$')
  if not code then
    code, text = 'ERR', message:match('^%-?(.*)$')
  end
  return { err = code .. ' ' .. text:match('^[\r\n]*(.-)[\r\n]*$') }
end

function redis.error_reply(...)
  if select('#', ...) ~= 1 or type(...) ~= 'string' then
    return { err = 'ERR wrong number or type of arguments' }
  end
  return code_and_text((...))
end

function redis.status_reply(...)
  if select('#', ...) ~= 1 or type(...) ~= 'string' then
    return { err = 'ERR wrong number or type of arguments' }
  end
  return { ok = (...) }
end

function redis.replicate_commands()
  return true
end

function redis.breakpoint()
  return false
end

function redis.debug() end

-- Globals.

local function missing(_, name)
  if type(name) ~= 'string' and type(name) ~= 'number' then
    error('Second argument to luaProtectedTableError must be a string or number', 2)
  end
  error("Script attempted to access nonexistent global variable '" .. name .. "'", 2)
end

for name, real in pairs {
  string = strings, table = copy(table), math = maths, coroutine = coroutines,
  bit = bits, cjson = json, cmsgpack = msgpack, struct = structs,
  redis = redis,
} do
  globals[name] = protect(real)
end

-- A settings table of its own is not worth it: the one there is, is given.
function json.new()
  return globals.cjson
end

local string_meta = getmetatable('')
string_meta.__index = strings
local shown_string_meta = protect({ __index = globals.string })
local shown_meta = protect({ __index = missing })

local library_environment = {}

function globals.getmetatable(value)
  if type(value) == 'string' then
    return shown_string_meta
  elseif value == environment or value == library_environment then
    return shown_meta
  elseif protected[value] then
    return nil
  end
  return getmetatable(value)
end

globals._G = environment
protected[environment] = globals
setmetatable(globals, { __index = missing })
setmetatable(environment, { __index = globals, __newindex = refuse })

-- Functions of libraries see the same without KEYS and ARGV. While their library is loaded there is
-- nothing but another `redis`.
local library_globals = copy(globals)
library_globals._G = library_environment
protected[library_environment] = library_globals
setmetatable(library_globals, { __index = missing })

local loading
local loading_redis = copy(redis, {
  call = true, pcall = true, sha1hex = true, error_reply = true, status_reply = true,
  setresp = true, set_repl = true, replicate_commands = true, breakpoint = true, debug = true,
  acl_check_cmd = true, REPL_NONE = true, REPL_AOF = true, REPL_SLAVE = true,
  REPL_REPLICA = true, REPL_ALL = true,
})
setmetatable(loading_redis, { __index = missing })
local loading_globals = setmetatable({ redis = protect(loading_redis) }, { __index = missing })
local library_meta = { __index = library_globals, __newindex = refuse }
setmetatable(library_environment, library_meta)

-- Running.

-- Adds where it happened: the innermost line that is the script's.
local function describe(err)
  if aborted() then
    return err
  end
  err = real(err)
  if type(err) ~= 'table' then
    err = { err = 'ERR ' .. tostring(err) }
  end
  local source, line = host.place()
  if source then
    rawset(err, 'source', source)
    rawset(err, 'line', line)
  end
  return err
end

local scripts = {}
local functions = {}

local self = { environment = environment }

function self.compile(id, text)
  local f, why = compile(text, '@user_script')
  if not f then
    return why
  end
  setfenv(f, environment)
  scripts[id] = f
end

function self.forget(id)
  scripts[id] = nil
end

function self.forget_function(id)
  functions[id] = nil
end

function self.run(id, keys, args)
  pending[1], globals.KEYS, globals.ARGV = nil, keys, args
  local ok, value = xpcall(scripts[id], describe)
  globals.KEYS, globals.ARGV = nil, nil
  return ok, value
end

function self.call(id, keys, args)
  pending[1] = nil
  local f = functions[id]
  local ok, value = xpcall(function() return f(keys, args) end, describe)
  return ok, value
end

-- Libraries.

local function fail(message)
  error({ err = 'ERR ' .. message }, 0)
end

local FLAGS = {
  ['no-writes'] = true, ['allow-oom'] = true, ['allow-stale'] = true, ['no-cluster'] = true,
  ['allow-cross-slot-keys'] = true,
}

local function text_of(value)
  if type(value) == 'string' or type(value) == 'number' then
    return tostring(value)
  end
end

local function read_flags(list)
  local flags = {}
  local i = 1
  while list[i] ~= nil do
    local flag = text_of(list[i])
    flag = flag and flag:lower()
    if not FLAGS[flag] then
      fail('unknown flag given')
    end
    flags[flag] = true
    i = i + 1
  end
  return flags
end

local function read_named(given)
  if type(given) ~= 'table' then
    fail('calling redis.register_function with a single argument is only applicable to Lua table '
      .. '(representing named arguments).')
  end
  local found = { flags = {} }
  for key, value in next, given do
    local name = text_of(key)
    if not name then
      fail('named argument key given to redis.register_function is not a string')
    end
    name = name:lower()
    if name == 'function_name' then
      found.name = text_of(value)
        or fail('function_name argument given to redis.register_function must be a string')
    elseif name == 'description' then
      found.description = text_of(value)
        or fail('description argument given to redis.register_function must be a string')
    elseif name == 'callback' then
      if type(value) ~= 'function' then
        fail('callback argument given to redis.register_function must be a function')
      end
      found.callback = value
    elseif name == 'flags' then
      if type(value) ~= 'table' then
        fail('flags argument to redis.register_function must be a table representing function '
          .. 'flags')
      end
      found.flags = read_flags(value)
    else
      fail('unknown argument given to redis.register_function')
    end
  end
  if not found.name then
    fail('redis.register_function must get a function name argument')
  elseif not found.callback then
    fail('redis.register_function must get a callback argument')
  end
  return found
end

local function read_positional(name, callback)
  if not text_of(name) then
    fail('first argument to redis.register_function must be a string')
  elseif type(callback) ~= 'function' then
    fail('second argument to redis.register_function must be a function')
  end
  return { name = text_of(name), callback = callback, flags = {} }
end

local function register(...)
  if not loading then
    fail('redis.register_function can only be called on FUNCTION LOAD command')
  end
  local n = select('#', ...)
  if n < 1 or n > 2 then
    fail('wrong number of arguments to redis.register_function')
  end
  local found = n == 1 and read_named((...)) or n == 2 and read_positional(...)
  if not found.name:match('^[%w_]+$') then
    fail('Library names can only contain letters, numbers, or underscores(_) and must be at least '
      .. 'one character long')
  end
  for _, other in next, loading do
    if other.name == found.name then
      fail('Function already exists in the library')
    end
  end
  loading[#loading + 1] = found
end
loading_redis.register_function = register
redis.register_function = nil

-- Gives what is wrong, or nil and the functions: name, number, description, flags.
function self.load(text, first)
  local f, why = compile(text, '@user_function')
  if not f then
    return 'Error compiling function: ' .. why
  end
  setfenv(f, library_environment)
  pending[1], loading, library_meta.__index = nil, {}, loading_globals
  local ok, err = pcall(f)
  local found = loading
  loading, library_meta.__index = nil, library_globals
  if not ok then
    if aborted() then
      return 'Error registering functions: ERR FUNCTION LOAD timeout'
    end
    err = real(err)
    local message = type(err) == 'table' and text_of(rawget(err, 'err'))
    return 'Error registering functions: ' .. (message or 'ERR ' .. tostring(err))
  end
  local rows = {}
  for i, each in ipairs(found) do
    local id = first + i - 1
    functions[id] = each.callback
    rows[i] = { each.name, each.description or false, each.flags }
  end
  return nil, rows
end

return self
