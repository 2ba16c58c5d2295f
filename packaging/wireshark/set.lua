-- Wireshark's view of SET: a dissector of docs/reference/set-protocol.md.
--
-- Copy it to Wireshark's folder of personal plugins (Help, About, Folders), or name it: tshark -X lua_script:set.lua.
-- Filters begin with `anabranch`, the protocol column says SET. Tested with Wireshark 4.0, whose Lua is 5.2;
-- nothing in it is known to be otherwise in 5.4.
--
-- Segments that come late are put in order only with the preference tcp.reassemble_out_of_order, which is off by default:
-- turn it on (-o tcp.reassemble_out_of_order:TRUE).
--
-- A stream is followed from its beginning, each direction for itself: where the last chunk ended, and whether plain octets of
-- the file follow. What does not begin as SET does is called encrypted or unknown, and that is all that is said of it. What
-- begins so and goes wrong later is malformed.
--
-- Licensed under Apache-2.0 OR MIT, as the project is.

local set = Proto("anabranch", "Anabranch SET")

local REQUEST, ACCEPT, REFUSE, SETSYN, JOIN, SETACK, DATA, ACK, CANCEL, PAPER = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local TYPES = { "REQUEST", "ACCEPT", "REFUSE", "SETSYN", "JOIN", "SETACK", "DATA", "ACK", "CANCEL", "DATA (paper's layout)" }
local PLANS = { [0] = "sessions", [1] = "end to end", [2] = "split" }
local REASONS = {
    [0] = "no striping", [1] = "busy", [2] = "version not spoken", [3] = "another file is unfinished", [4] = "unwanted",
}
-- With reason 4, the number after it.
local WHY = {
    [0] = "not told", [1] = "too large", [2] = "no room", [3] = "wrong digest", [4] = "no trusted signature", [5] = "not kept",
    [6] = "rollback", [7] = "another device", [8] = "expired", [9] = "no whole image", [10] = "no manifest, or a shorter one",
}
local STATUSES = { [0] = "open", [1] = "unreachable", [2] = "forbidden", [3] = "congested" }
-- A stream of an encrypted transfer begins with 0xb0 and one of these, and the length of what Noise says.
local PATTERNS = { [0] = "known keys (Noise IK)", [1] = "a shared key (Noise NNpsk0)" }
local GREETING, LONGEST_GREETING = 0xb0, 256
-- Messages from sender or gateway to the node; the others go the other way.
local DOWN = { [REQUEST] = true, [SETSYN] = true, [JOIN] = true, [DATA] = true, [CANCEL] = true, [PAPER] = true }
-- A stream of an encrypted transfer begins with these in plaintext where they are for a gateway that asks for no key, or come
-- from a gateway. Then records follow, each of which begins with its length, at most 16 KiB and a tag: its first octet is at
-- most 0x40, which no message that may stand there has, except a SETSYN that is repeated.
local OPENING = { [SETSYN] = true, [JOIN] = true, [SETACK] = true }
local RECORD = 0x40
-- What a direction may begin with.
local FIRST = {
    down = { [REQUEST] = true, [SETSYN] = true, [JOIN] = true },
    up = { [ACCEPT] = true, [REFUSE] = true, [SETACK] = true, [ACK] = true },
}

-- The largest integer that a message can hold: 62 bits.
local MAX = UInt64.new(0xffffffff, 0x3fffffff)
-- A chunk that is longer is not gathered: no sender cuts such.
local LONGEST_CHUNK = 16 * 1024 * 1024
-- Messages that the info column names.
local NAMED = 6

local f = {
    kind = ProtoField.uint8("anabranch.type", "Type", base.DEC, TYPES, 0xf0),
    flags = ProtoField.uint8("anabranch.flags", "Flags", base.HEX, nil, 0x0f),
    plan = ProtoField.uint8("anabranch.plan", "Plan", base.DEC, PLANS),
    version = ProtoField.uint8("anabranch.version", "Version", base.DEC),
    transfer = ProtoField.uint64("anabranch.transfer", "Transfer", base.HEX),
    session = ProtoField.uint8("anabranch.session", "Session", base.DEC),
    sessions = ProtoField.uint8("anabranch.sessions", "Sessions", base.DEC),
    length = ProtoField.uint64("anabranch.request.length", "Length of the file", base.DEC),
    options = ProtoField.uint8("anabranch.request.options", "Options", base.HEX),
    signed = ProtoField.bool("anabranch.request.signed", "Signature follows", 8, nil, 0x01),
    discard = ProtoField.bool("anabranch.request.discard", "Discard an unfinished file", 8, nil, 0x02),
    digest = ProtoField.bytes("anabranch.request.digest", "SHA-256 of the file"),
    signature = ProtoField.bytes("anabranch.request.signature", "Signature"),
    manifest_length = ProtoField.uint64("anabranch.request.manifest_length", "Length of the manifest", base.DEC),
    manifest = ProtoField.bytes("anabranch.request.manifest", "Manifest (SUIT envelope)"),
    buffer = ProtoField.uint64("anabranch.accept.buffer", "Receive buffer", base.DEC),
    rows = ProtoField.uint8("anabranch.accept.rows", "Gateways", base.DEC),
    row = ProtoField.none("anabranch.gateway", "Gateway"),
    neighbours = ProtoField.uint8("anabranch.gateway.neighbours", "Number of neighbours", base.DEC, nil, 0xf0),
    depleted = ProtoField.bool("anabranch.gateway.depleted", "Depleted", 8, nil, 0x02),
    is_ipv6 = ProtoField.bool("anabranch.ipv6", "IPv6", 8, nil, 0x01),
    has_key = ProtoField.bool("anabranch.gateway.has_key", "Key", 8, nil, 0x04),
    shared_channel = ProtoField.bool("anabranch.gateway.shared_channel", "Shared channel", 8, nil, 0x08),
    key = ProtoField.bytes("anabranch.gateway.key", "X25519 public key"),
    gateway_id = ProtoField.uint16("anabranch.gateway.id", "Id", base.DEC),
    hops = ProtoField.uint8("anabranch.gateway.hops", "Hops", base.DEC),
    ipv4 = ProtoField.ipv4("anabranch.address", "Address"),
    ipv6 = ProtoField.ipv6("anabranch.address6", "Address"),
    port = ProtoField.uint16("anabranch.port", "Port", base.DEC),
    neighbour = ProtoField.uint16("anabranch.gateway.neighbour", "Neighbour", base.DEC),
    energies = ProtoField.uint16("anabranch.gateway.energies", "Depleted neighbours", base.HEX),
    reason = ProtoField.uint8("anabranch.refuse.reason", "Reason", base.DEC, REASONS, 0x0f),
    why = ProtoField.uint64("anabranch.refuse.why", "Why it is unwanted", base.DEC),
    status = ProtoField.uint8("anabranch.setack.status", "Status", base.DEC, STATUSES, 0x0f),
    delivered = ProtoField.uint64("anabranch.delivered", "Delivered", base.DEC),
    received = ProtoField.uint64("anabranch.ack.received", "Received on this stream", base.DEC),
    ranges = ProtoField.uint8("anabranch.ack.ranges", "Ranges", base.DEC, nil, 0x0f),
    range = ProtoField.none("anabranch.ack.range", "Held"),
    gap = ProtoField.uint64("anabranch.ack.gap", "Gap", base.DEC),
    held = ProtoField.uint64("anabranch.ack.held", "Length", base.DEC),
    start = ProtoField.uint64("anabranch.ack.start", "First octet", base.DEC),
    stop = ProtoField.uint64("anabranch.ack.end", "One past the last octet", base.DEC),
    has_offset = ProtoField.bool("anabranch.data.has_offset", "The offset is there", 8, nil, 0x01),
    offset = ProtoField.uint64("anabranch.data.offset", "Offset", base.DEC),
    chunk = ProtoField.uint64("anabranch.data.length", "Length", base.DEC),
    sequence = ProtoField.uint32("anabranch.data.sequence", "Sequence number", base.DEC),
    acknowledgement = ProtoField.uint32("anabranch.data.acknowledgement", "Acknowledgement number", base.DEC),
    via = ProtoField.ipv4("anabranch.data.intermediate", "Intermediate address"),
    last = ProtoField.ipv4("anabranch.data.final", "Final address"),
    via_port = ProtoField.uint16("anabranch.data.intermediate_port", "Intermediate port", base.DEC),
    last_port = ProtoField.uint16("anabranch.data.final_port", "Final port", base.DEC),
    octets = ProtoField.bytes("anabranch.data.octets", "Octets of the file"),
    plain = ProtoField.bytes("anabranch.plain", "Octets of the file, plain"),
    greeting = ProtoField.uint8("anabranch.greeting", "Greeting", base.DEC, PATTERNS, 0x0f),
    unknown = ProtoField.bytes("anabranch.unknown", "Encrypted or unknown data"),
}
local fields = {}
for _, field in pairs(f) do
    fields[#fields + 1] = field
end
set.fields = fields

local e = {
    malformed = ProtoExpert.new("anabranch.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR),
    unusual = ProtoExpert.new("anabranch.unusual", "Unusual", expert.group.PROTOCOL, expert.severity.WARN),
    cut = ProtoExpert.new("anabranch.cut", "Cut off", expert.group.UNDECODED, expert.severity.NOTE),
    gap = ProtoExpert.new("anabranch.gap", "Gap", expert.group.SEQUENCE, expert.severity.NOTE),
}
set.experts = { e.malformed, e.unusual, e.cut, e.gap }

set.prefs.node_ports = Pref.range("Ports of nodes", "47200", "TCP ports that nodes listen on", 65535)
set.prefs.gateway_ports = Pref.range("Ports of gateways", "47201", "TCP ports that gateways listen on", 65535)

-- Reading -------------------------------------------------------------------------------------------------------------

-- One message, as a list of items that are shown when all of it is there. What stops it is thrown as a table:
-- { missing = N } octets, none if their number is not known, or { bad = FIELD }.
local Reader = {}
Reader.__index = Reader

function Reader.new(tvb, at)
    return setmetatable({ tvb = tvb, start = at, at = at, items = {}, notes = {} }, Reader)
end

function Reader:need(octets)
    if self.at + octets > self.tvb:len() then
        error({})
    end
end

function Reader:bad(what)
    error({ bad = what })
end

-- A field of so many octets, which are what it says unless a value is given.
function Reader:take(field, octets, value)
    self:need(octets)
    local item = { field = field, at = self.at, octets = octets, value = value }
    self.items[#self.items + 1] = item
    self.at = self.at + octets
    return item
end

-- Something that is said, but not by octets of its own.
function Reader:derive(field, value)
    self.items[#self.items + 1] = { field = field, at = self.at, octets = 0, value = value, generated = true }
end

function Reader:uint(field, octets)
    return self.tvb(self:take(field, octets).at, octets):uint()
end

-- The items that `body` takes, under one of their own.
function Reader:group(field, body)
    local outer, at = self.items, self.at
    local group = { field = field, at = at, items = {} }
    self.items = group.items
    group.text = body()
    group.octets = self.at - at
    self.items = outer
    outer[#outer + 1] = group
end

-- RFC 9000 section 16.
function Reader:varint(field)
    self:need(1)
    local octets = 2 ^ self.tvb(self.at, 1):bitfield(0, 2)
    self:need(octets)
    local value = self.tvb(self.at, octets):bitfield(2, 8 * octets - 2)
    if type(value) == "number" then
        value = UInt64.new(value)
    end
    self:take(field, octets, value)
    return value
end

function Reader:address(ipv6)
    if ipv6 then
        self:take(f.ipv6, 16)
    else
        self:take(f.ipv4, 4)
    end
    self:uint(f.port, 2)
    local at, octets = self.at, ipv6 and 16 or 4
    local ip = self.tvb(at - 2 - octets, octets)
    local text = tostring(ipv6 and ip:ipv6() or ip:ipv4())
    return (ipv6 and "[" .. text .. "]" or text) .. ":" .. self.tvb(at - 2, 2):uint()
end

function Reader:plan(plan)
    if not PLANS[plan] then
        self:bad("plan")
    end
    self:derive(f.plan, plan)
    return PLANS[plan]
end

-- Each reads what follows the first octet; it may change the state of its direction and of its stream, and answers what the
-- info column says.
local read = {}

read[REQUEST] = function(r, flags)
    -- Bit 2: the identity of the file follows the length. Bit 3: a manifest does, behind it.
    -- Plan 3: SET sessions, and the file follows on this stream.
    local copy = flags % 4 == 3
    local plan = r:plan(copy and 0 or flags % 4)
    r:uint(f.version, 1)
    r:take(f.transfer, 8)
    local length = r:varint(f.length)
    if copy and tonumber(tostring(length)) > 1200 then
        r:bad("length of a copy")
    end
    if flags % 8 >= 4 then
        local options = r:uint(f.options, 1)
        if options >= 4 then
            r:bad("options of a file")
        end
        r.at = r.at - 1
        r:take(f.signed, 1)
        r.at = r.at - 1
        r:take(f.discard, 1)
        r:take(f.digest, 32)
        if options % 2 == 1 then
            r:take(f.signature, 64)
        end
    end
    if flags >= 8 then
        local octets = tonumber(tostring(r:varint(f.manifest_length)))
        if octets < 1 or octets > 1024 then
            r:bad("length of a manifest")
        end
        r:take(f.manifest, octets)
    end
    return string.format("%s octets, %s%s", tostring(length), plan, copy and ", copy follows" or "")
end

read[ACCEPT] = function(r, rows)
    r:derive(f.rows, rows)
    local buffer = r:varint(f.buffer)
    for _ = 1, rows do
        r:group(f.row, function()
            r:need(1)
            local first = r.tvb(r.at, 1):uint()
            r:take(f.neighbours, 1)
            r.at = r.at - 1
            r:take(f.shared_channel, 1)
            r.at = r.at - 1
            r:take(f.has_key, 1)
            r.at = r.at - 1
            r:take(f.depleted, 1)
            r.at = r.at - 1
            r:take(f.is_ipv6, 1)
            local id = r:uint(f.gateway_id, 2)
            if r:uint(f.hops, 1) == 0 then
                r:bad("hop count of a gateway")
            end
            local address = r:address(first % 2 == 1)
            if math.floor(first / 4) % 2 == 1 then
                r:take(f.key, 32)
            end
            for _ = 1, math.floor(first / 16) do
                r:uint(f.neighbour, 2)
            end
            r:take(f.energies, 2)
            return string.format("Gateway %d at %s", id, address)
        end)
    end
    return string.format("buffer %s, %d gateways", tostring(buffer), rows)
end

read[REFUSE] = function(r, reason, _, stream)
    if not REASONS[reason] then
        r.notes[#r.notes + 1] = "a reason that is not known"
    end
    if reason == 4 then
        local why = r:varint(f.why)
        return string.format("%s: %s", REASONS[reason], WHY[why:tonumber()] or "a reason that is not known")
    end
    local delivered = r:varint(f.delivered)
    if reason == 0 then
        stream.down.mode = "plain"
    end
    return string.format("%s, from %s on", REASONS[reason] or "unknown reason", tostring(delivered))
end

local function session(r, plan)
    local plan_name = r:plan(plan)
    r:take(f.transfer, 8)
    local number, all = r:uint(f.session, 1), r:uint(f.sessions, 1)
    if number >= all then
        r:bad("number of the session")
    end
    return string.format("session %d of %d, %s", number, all, plan_name)
end

-- A plain split connection: the file follows.
local function follow(plan, direction)
    if plan == 2 then
        direction.mode = "plain"
    end
end

read[SETSYN] = function(r, flags, direction)
    local plan = math.floor(flags / 2)
    local text = session(r, plan) .. ", to " .. r:address(flags % 2 == 1)
    follow(plan, direction)
    return text
end

read[JOIN] = function(r, flags, direction)
    local plan = math.floor(flags / 2)
    local text = session(r, plan)
    follow(plan, direction)
    return text
end

read[SETACK] = function(r, status)
    if not STATUSES[status] then
        r.notes[#r.notes + 1] = "a status that is not known"
    end
    return string.format("session %d %s", r:uint(f.session, 1), STATUSES[status] or "unknown status")
end

-- The octets of a chunk, which must all be there.
local function chunk(r, offset, length, direction)
    local stop = offset + length
    if stop > MAX or length > UInt64.new(LONGEST_CHUNK) then
        r:bad("length of a data chunk")
    end
    local octets = length:tonumber()
    local here = r.tvb:len() - r.at
    if octets > here then
        error({ missing = octets - here })
    end
    if octets > 0 then
        r:take(f.octets, octets)
    end
    direction.expected = stop
    return string.format("%s+%s", tostring(offset), tostring(length))
end

read[DATA] = function(r, flags, direction)
    local offset
    if flags % 2 == 1 then
        offset = r:varint(f.offset)
    else
        offset = direction.expected
        r:derive(f.offset, offset)
    end
    return chunk(r, offset, r:varint(f.chunk), direction)
end

-- The offset nearest to `expected` whose low 32 bits are `sequence`.
local function unwrap(sequence, expected)
    local round = 2 ^ 32
    local distance = (sequence - expected % round + round / 2) % round - round / 2
    local offset = expected + distance
    return offset < 0 and sequence or offset
end

-- UInt64 from a number that may have more than 32 bits.
local function wide(number)
    return UInt64.new(number % 2 ^ 32, math.floor(number / 2 ^ 32))
end

read[PAPER] = function(r, _, direction)
    r:need(22)
    local length = UInt64.new(r.tvb(r.at, 2):uint())
    r:take(f.chunk, 2, length)
    local offset = wide(unwrap(r:uint(f.sequence, 4), direction.expected:tonumber()))
    r:derive(f.offset, offset)
    r:take(f.acknowledgement, 4)
    r:take(f.via, 4)
    r:take(f.last, 4)
    r:take(f.via_port, 2)
    r:take(f.last_port, 2)
    return chunk(r, offset, length, direction)
end

read[ACK] = function(r, ranges)
    local delivered = r:varint(f.delivered)
    r:varint(f.received)
    local at, zero = delivered, UInt64.new(0)
    for _ = 1, ranges do
        r:group(f.range, function()
            local gap = r:varint(f.gap)
            local length = r:varint(f.held)
            local start = at + gap
            local stop = start + length
            if gap == zero or length == zero or stop > MAX then
                r:bad("range of an acknowledgement")
            end
            r:derive(f.start, start)
            r:derive(f.stop, stop)
            at = stop
            return string.format("Held: %s to %s", tostring(start), tostring(stop - UInt64.new(1)))
        end)
    end
    local held = ranges > 0 and string.format(", %d ranges held", ranges) or ""
    return string.format("%s delivered%s", tostring(delivered), held)
end

read[CANCEL] = function()
    return nil
end

-- The flags of the first octet that are fields of their own.
local FLAGS = { [REFUSE] = f.reason, [SETACK] = f.status, [ACK] = f.ranges, [DATA] = f.has_offset, [SETSYN] = f.is_ipv6 }

-- Streams -------------------------------------------------------------------------------------------------------------

-- What is known of each stream, in the order of the capture, and what was known before each piece, for when Wireshark asks
-- for it again.
local streams, before = {}, {}

function set.init()
    streams, before = {}, {}
end

local tcp_stream = Field.new("tcp.stream")
-- Octets before this piece are not in the capture, or come after it.
local tcp_gap = Field.new("tcp.analysis.lost_segment")

local function direction()
    -- mode: nil at the beginning, "opened" behind what is in plaintext always, "set", "plain" or "unknown".
    return { mode = nil, expected = UInt64.new(0) }
end

local function copy(d)
    return { mode = d.mode, expected = d.expected, setsyn = d.setsyn }
end

-- The SETSYN that this direction began with, once more: two octets of it tell.
local function repeated(tvb, at, direction_)
    return direction_.setsyn and at + 2 <= tvb:len() and tvb(at, 2):uint() == direction_.setsyn
end

local function within(ports, port)
    for from, to in tostring(ports):gmatch("(%d+)%-?(%d*)") do
        if port >= tonumber(from) and port <= tonumber(to ~= "" and to or from) then
            return true
        end
    end
    return false
end

local function is_port(port)
    return within(set.prefs.node_ports, port) or within(set.prefs.gateway_ports, port)
end

-- Which way a piece goes: "down" is towards the node. The ports say it; where they do not, the first message does.
local function way(pinfo, kind)
    local to, from = is_port(pinfo.dst_port), is_port(pinfo.src_port)
    if to ~= from then
        return to and "down" or "up", true
    end
    return DOWN[kind] and "down" or "up", false
end

-- The stream of a piece, as it stood before it.
local function state(pinfo, tvb, kind)
    local found = tcp_stream()
    local id = found and found.value or 0
    local key = table.concat({ pinfo.number, tvb:offset(), tvb:len() }, ":")
    if before[key] then
        local seen = before[key]
        return { down = copy(seen.down), up = copy(seen.up) }, seen.way, seen.sure
    end
    local stream = streams[id]
    if not stream then
        stream = { down = direction(), up = direction(), ways = {} }
        streams[id] = stream
    end
    -- One direction of a stream stays what its first piece was taken for.
    local from = tostring(pinfo.src) .. ":" .. pinfo.src_port
    local known = stream.ways[from]
    if not known then
        local which, sure = way(pinfo, kind)
        known = { way = which, sure = sure }
        stream.ways[from] = known
    end
    before[key] = { down = copy(stream.down), up = copy(stream.up), way = known.way, sure = known.sure }
    return stream, known.way, known.sure
end

-- Showing -------------------------------------------------------------------------------------------------------------

local function show(tree, tvb, items)
    for _, item in ipairs(items) do
        local range = item.octets > 0 and tvb(item.at, item.octets) or nil
        local shown
        if item.items then
            shown = range and tree:add(item.field, range) or tree:add(item.field)
            if item.text then
                shown:set_text(item.text)
            end
            show(shown, tvb, item.items)
        elseif not range then
            shown = tree:add(item.field, item.value)
        elseif item.value then
            shown = tree:add(item.field, range, item.value)
        else
            shown = tree:add(item.field, range)
        end
        if item.generated then
            shown:set_generated()
        end
    end
end

-- Reads the message at `at`. Answers its reader, the text for the info column, and what has stopped it, if anything has.
local function message(tvb, at, direction_, stream)
    local r = Reader.new(tvb, at)
    local kind, flags = tvb(at, 1):bitfield(0, 4), tvb(at, 1):bitfield(4, 4)
    r.kind = kind
    r:take(f.kind, 1)
    r.at = at
    r:take(FLAGS[kind] or f.flags, 1)
    if not read[kind] then
        return r, nil, { bad = "type of the message" }
    end
    local whole, answer = pcall(read[kind], r, flags, direction_, stream)
    if whole then
        return r, answer, nil
    end
    if type(answer) ~= "table" then
        error(answer, 0)
    end
    return r, nil, answer
end

-- The pattern of a greeting, if one begins there.
local function greeting(tvb, at)
    if at + 3 > tvb:len() then
        return nil
    end
    local pattern, length = tvb(at, 1):uint() - GREETING, tvb(at + 1, 2):uint()
    return length <= LONGEST_GREETING and PATTERNS[pattern] or nil
end

local function opaque(tree, field, tvb, at)
    local octets = tvb:len() - at
    tree:add(field, tvb(at, octets))
    return octets
end

function set.dissector(tvb, pinfo, root)
    if tvb:len() == 0 then
        return 0
    end
    local stream, way_, sure = state(pinfo, tvb, tvb(0, 1):bitfield(0, 4))
    local me = stream[way_]
    pinfo.cols.protocol = "SET"
    local said, at = {}, 0
    local tree = root:add(set, tvb())
    local function say(text)
        said[#said + 1] = text
    end

    if tcp_gap() and me.mode ~= "plain" and me.mode ~= "unknown" then
        me.mode = "unknown"
        local note = "octets before this are missing or come later: try the preference tcp.reassemble_out_of_order"
        tree:add_proto_expert_info(e.gap, note)
    end
    while at < tvb:len() do
        if me.mode == nil and not FIRST[way_][tvb(at, 1):bitfield(0, 4)] then
            me.mode = "unknown"
            local pattern = way_ == "down" and greeting(tvb, at)
            if pattern then
                tree:add(f.greeting, tvb(at, 1))
                say("greeting with " .. pattern)
            end
        end
        if me.mode == "opened" and tvb(at, 1):uint() <= RECORD and not repeated(tvb, at, me) then
            me.mode = "unknown"
        end
        if me.mode == "plain" then
            say(string.format("%d plain octets of the file", opaque(tree, f.plain, tvb, at)))
            break
        elseif me.mode == "unknown" then
            say(string.format("%d octets, encrypted or unknown", opaque(tree, f.unknown, tvb, at)))
            break
        end
        local r, text, stopped = message(tvb, at, me, stream)
        local cut = tvb:len() < tvb:reported_len()
        if stopped and not stopped.bad and not cut and pinfo.can_desegment > 0 then
            pinfo.desegment_offset = at
            pinfo.desegment_len = stopped.missing or DESEGMENT_ONE_MORE_SEGMENT
            if at == 0 then
                tree:append_text(", the beginning of a message")
            end
            break
        end
        local name = TYPES[r.kind] or string.format("type %d", r.kind)
        local whole = tree:add(set, tvb(at, stopped and tvb:len() - at or r.at - at))
        whole:set_text(text and name .. ": " .. text or name)
        show(whole, tvb, r.items)
        for _, note in ipairs(r.notes) do
            whole:add_proto_expert_info(e.unusual, note)
        end
        if sure and read[r.kind] and (DOWN[r.kind] and "down" or "up") ~= way_ then
            whole:add_proto_expert_info(e.unusual, name .. " goes the other way")
        end
        if stopped then
            if stopped.bad then
                whole:add_proto_expert_info(e.malformed, stopped.bad .. " is not valid; nothing after it can be understood")
                say(name .. " [malformed]")
            else
                whole:add_proto_expert_info(e.cut, "the rest is not in the capture")
                say(name .. " [cut off]")
            end
            me.mode = "unknown"
            break
        end
        if #said < NAMED then
            say(text and name .. " " .. text or name)
        elseif #said == NAMED then
            say("...")
        end
        -- REFUSE and the plans with plain octets have set another.
        if me.mode ~= "plain" then
            me.mode = OPENING[r.kind] and "opened" or "set"
        end
        if r.kind == SETSYN then
            me.setsyn = tvb(at, 2):uint()
        end
        at = r.at
    end
    if #said > 0 then
        -- The next piece of the same frame writes behind it.
        pinfo.cols.info = table.concat(said, "; ") .. " "
        pinfo.cols.info:fence()
    end
    return tvb:len()
end

-- Ports ---------------------------------------------------------------------------------------------------------------

local tcp_ports = DissectorTable.get("tcp.port")
local registered = {}

local function register()
    for _, ports in ipairs(registered) do
        tcp_ports:remove(ports, set)
    end
    registered = { tostring(set.prefs.node_ports), tostring(set.prefs.gateway_ports) }
    for _, ports in ipairs(registered) do
        if ports ~= "" then
            tcp_ports:add(ports, set)
        end
    end
end

function set.prefs_changed()
    register()
end

register()
