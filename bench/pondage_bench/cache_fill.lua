-- Reads rows by key as oltp_point_select does, so that a cache keeps them. Pondage keeps an answer
-- when its key comes for the second time, and leaves a statement alone that never finds anything;
-- so each block of keys is asked for twice, and a part of it a third time.
--
-- `fill` is for every row once; `run` for random rows until the time is over.

sysbench.cmdline.options = {
   table_size = {"Number of rows", 10000},
   tables = {"Number of tables; only the first is read", 1},
}

local BLOCK = 500
local AGAIN = 100

local function connect()
   con = sysbench.sql.driver():connect()
   stmt = con:prepare("SELECT c FROM sbtest1 WHERE id=?")
   id = stmt:bind_create(sysbench.sql.type.INT)
   stmt:bind_param(id)
end

local function disconnect()
   stmt:close()
   con:disconnect()
end

local function ask(keys, count)
   for i = 1, count do
      id:set(keys[i])
      stmt:execute()
   end
end

local function ask_often(keys)
   ask(keys, #keys)
   ask(keys, #keys)
   ask(keys, math.min(AGAIN, #keys))
end

local function cmd_fill()
   connect()
   local rows = sysbench.opt.table_size
   local thread = sysbench.tid % sysbench.opt.threads
   for first = 1 + thread * BLOCK, rows, sysbench.opt.threads * BLOCK do
      local keys = {}
      for key = first, math.min(first + BLOCK - 1, rows) do
         keys[#keys + 1] = key
      end
      ask_often(keys)
   end
   disconnect()
end

sysbench.cmdline.commands = {
   fill = {cmd_fill, sysbench.cmdline.PARALLEL_COMMAND},
}

function thread_init()
   connect()
end

function thread_done()
   disconnect()
end

function event()
   local keys = {}
   for i = 1, BLOCK do
      keys[i] = sysbench.rand.uniform(1, sysbench.opt.table_size)
   end
   ask_often(keys)
end
