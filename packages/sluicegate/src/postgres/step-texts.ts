import { DEEPEST_DEBT_BURSTS, FURTHEST_US } from '../policy/policy-numbers.js'

// One step of a rate or a fixed window in SQL: twin of lua/steps/rate.lua, fixed-window.lua and verbs.lua. All is bigint, on the server's clock,
// which is read when the row is locked. A row is in one of two forms: `value` is empty, and the columns hold the state; or `value` is what a
// swap wrote, and the columns mean nothing. Each form is replaced by the other only where its version fits.
//
//   at, rest             rate: the debt is paid at `at`, and `rest` units after it; window: its beginning, and its count
//   unit, pace, cap      the numbers by which it was written: units a token, units a microsecond, capacity; of a window its length, 0, limit
//   ahead                debt beyond the capacity, or a window later than now, was booked or penalized: no clock that stepped back
//   blocked              the end of a ban, microseconds, or 0
//   seen                 the time of the last step, by which its answer is read

/** Columns of the state, in the order in which statements write them. */
const STEP_COLUMNS = ['at', 'rest', 'unit', 'pace', 'cap', 'ahead', 'blocked'] as const
/** Those, and what else a step writes. */
const WRITTEN = [...STEP_COLUMNS, 'seen', 'expires'].join(', ')

/** The server's clock, microseconds. */
export const NOW = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint'

/** The request, by the name of each value. */
export type StepInput = Record<
  'verb' | 'isWindow' | 'unit' | 'pace' | 'cap' | 'lent' | 'amount' | 'times' | 'bound' | 'booked' | 'left' | 'made',
  string
>

const STATE_COLUMNS = [...STEP_COLUMNS, 'seen'] as const
/** The state of a row, as expressions. */
export type StepRow = Record<(typeof STATE_COLUMNS)[number], string>

const FRESH: StepRow = { at: '0', rest: '0', unit: '0', pace: '0', cap: '0', ahead: 'false', blocked: '0', seen: '0' }

/**
 * Stages end with `OFFSET 0`: put into one another, their expressions would double with each use.
 *
 * The state at this moment, carried over to the requested numbers: a SELECT of now, debt (of a window its count), beginning, ahead, blocked.
 *
 * A count of other windows that are not over is carried over as of the last step: what was spent before a window began does not count in it. So a denial has nothing to
 * write, and versions of a policy side by side do not write their own numbers in turns.
 * What a rate owes is paid since the last step by the faster of both paces, and counts as a full key at most: as nothing passes before all is paid, none of
 * it is forgiven, and versions side by side stay within the larger.
 *
 * @param now an expression, read once
 */
function restoredText(row: StepRow, input: StepInput, now = NOW): string {
  const { isWindow } = input
  const isSame = `h.unit = ${input.unit} AND h.pace = ${input.pace}`
  const isAll = `${isSame} AND h.cap = ${input.cap}`
  const deepest = `greatest(${DEEPEST_DEBT_BURSTS} * h.cap, h.cap + ${FURTHEST_US} * h.pace)`
  const passedUs = '(n.now - least(h.seen, n.now))'
  const scaled = (debt: string): string => `ceil(${debt}::numeric * ${input.unit} / h.unit)`
  const begin = `n.now - n.now % ${input.unit}`
  const finish = `${begin} + ${input.unit}`
  // Later than any clock that goes on leaves a key: what asks for room alone leaves it as it is, and says how far that is.
  const isLook = `${input.verb} IN ('take', 'peek', 'lease')`
  const isFar = `(h.at > CASE WHEN h.ahead THEN greatest(${finish}, n.now + ${FURTHEST_US}) ELSE ${finish} END AND NOT ${isLook})`
  // A window in which nothing is booked any more: the one before it is full.
  const isFull = `h.unit = ${input.unit} AND h.rest = 0 AND h.cap <> ${input.cap} AND h.at = ${finish}`
  return `SELECT n.now, n.blocked, ${input.cap} AS cap,
  CASE WHEN ${isWindow} THEN
    CASE WHEN h.pace <> 0 OR h.unit = 0 THEN 0
      WHEN ${isFull} THEN least(h.cap, ${input.cap})
      WHEN h.unit <> ${input.unit} THEN CASE WHEN h.seen < ${begin} OR h.at + h.unit <= n.now THEN 0
        WHEN h.at > least(h.seen, n.now) THEN least(greatest(h.rest, h.cap), ${input.cap}) ELSE least(h.rest, ${input.cap}) END
      WHEN ${isFar} THEN ${input.cap}
      WHEN h.at + h.unit > n.now THEN CASE WHEN h.cap = ${input.cap} THEN h.rest ELSE least(h.rest, ${input.cap}) END
      ELSE 0 END
  ELSE
    CASE WHEN h.pace = 0 OR d.debt = 0 THEN 0
      WHEN ${isAll} THEN d.debt
      WHEN ${isSame} THEN least(d.debt, ${input.cap})
      ELSE least(${scaled('d.debt')}, greatest(${scaled(`(d.debt + ${passedUs} * h.pace)`)} - ${passedUs}::numeric * ${input.pace}, 0), ${input.cap})::bigint END
  END AS debt,
  CASE WHEN ${isWindow} THEN
    CASE WHEN h.unit = ${input.unit} AND h.pace = 0 AND h.at > n.now AND NOT (${isFull}) AND NOT ${isFar} THEN h.at ELSE ${begin} END
  ELSE 0 END AS begin,
  h.ahead AND ${isWindow} AND h.at > n.now AND NOT (${isFull}) AS ahead
FROM (SELECT ${row.at} AS at, ${row.rest} AS rest, ${row.unit} AS unit, ${row.pace} AS pace, ${row.cap} AS cap, ${row.ahead} AS ahead, ${row.blocked} AS blocked, ${row.seen} AS seen) AS h
CROSS JOIN LATERAL (SELECT c.now, CASE WHEN h.blocked > c.now THEN h.blocked ELSE 0 END AS blocked FROM (SELECT ${now} AS now OFFSET 0) AS c OFFSET 0) AS n
CROSS JOIN LATERAL (SELECT CASE WHEN h.pace = 0 OR h.at < n.now THEN 0 ELSE least(
  least(h.at - n.now, ${deepest} / h.pace + 1) * h.pace + h.rest, CASE WHEN h.ahead OR ${isLook} THEN ${deepest} ELSE h.cap END) END AS debt OFFSET 0) AS d OFFSET 0`
}

/** What a verb makes of the state `s`: a SELECT of done, debt, begin, ahead, blocked. */
function steppedText(input: StepInput): string {
  const { verb, isWindow, unit, pace, cap, lent, amount, times, bound, booked, left, made } = input
  const deepest = `greatest(${DEEPEST_DEBT_BURSTS} * ${cap}, ${cap} + ${FURTHEST_US} * ${pace})`
  const isOpen = `s.blocked = 0 AND s.begin <= s.now`
  const room = `greatest(${cap} - s.debt, 0)`
  // A rate that lends keeps room for tokens that are spent at the end of their lease.
  const lentRoom = `greatest(${cap} - greatest(s.debt, ${lent}), 0)`
  const least = `least(s.debt, ${lent})`
  // Of a booking what has not flowed back since its time; before its time all or nothing, and nothing once there is a later one.
  const isBefore = `(${bound} > ${made} AND s.now < ${bound})`
  const back = `(CASE WHEN ${isBefore} THEN CASE WHEN ${amount} = ${booked} THEN ${booked} ELSE 0 END
    ELSE least(${amount}, ${booked} - least(greatest(s.now - ${bound}, 0), ${booked} / greatest(${pace}, 1) + 1) * ${pace}) END)`
  const furthest = `(CASE WHEN ${isBefore} THEN ${left} - (s.now - ${made}) * ${pace} ELSE ${cap} END)`
  const rest = `(CASE WHEN ${furthest} > ${cap} THEN least(${unit}, ${pace}) - 1 ELSE 0 END)`
  const waited = `((greatest(s.debt + ${amount} - ${cap}, 0) + greatest(${pace}, 1) - 1) / greatest(${pace}, 1))`
  const fits = `s.debt + ${amount} <= ${cap}`
  const freeAt = `(CASE WHEN ${fits} THEN greatest(s.begin, s.now) ELSE s.begin + ${unit} END)`
  const freeBegin = `(${freeAt} - ${freeAt} % ${unit})`
  const endOfNow = `(s.now - s.now % ${unit} + ${unit})`
  return `SELECT o.done,
  CASE WHEN ${verb} = 'reset' THEN 0
    WHEN ${verb} IN ('take', 'peek', 'block') THEN s.debt + o.done * ${amount} * (${verb} = 'take')::int
    WHEN ${verb} = 'lease' THEN CASE WHEN ${isWindow} THEN s.debt + o.done ELSE CASE WHEN o.done > 0 THEN greatest(s.debt, ${lent}) + o.done * ${unit} ELSE s.debt END END
    WHEN ${verb} = 'refund' THEN greatest(s.debt - ${amount}, ${least})
    WHEN ${verb} = 'penalize' THEN greatest(s.debt, least(s.debt + ${amount}, ${DEEPEST_DEBT_BURSTS} * ${cap}, ${Number.MAX_SAFE_INTEGER}))
    WHEN ${verb} = 'reserve' AND o.done = 1 THEN CASE WHEN ${isWindow} THEN CASE WHEN ${freeBegin} = s.begin THEN s.debt + ${amount} ELSE ${amount} END
      ELSE greatest(s.debt, ${waited} * ${pace}) + ${amount} END
    WHEN ${verb} = 'giveBack' AND ${isWindow} THEN CASE WHEN ${bound} >= s.begin AND ${bound} < s.begin + ${unit} THEN greatest(s.debt - ${amount}, 0) ELSE s.debt END
    WHEN ${verb} = 'giveBack' AND ${back} > 0 AND s.debt <= ${furthest} + ${rest} THEN greatest(least(s.debt, ${furthest}) - ${back}, ${least})
    ELSE s.debt END AS debt,
  CASE WHEN NOT ${isWindow} THEN 0 WHEN ${verb} = 'reset' THEN s.now - s.now % ${unit} WHEN ${verb} = 'reserve' AND o.done = 1 THEN ${freeBegin} ELSE s.begin END AS begin,
  CASE WHEN ${verb} = 'reset' THEN false WHEN ${verb} = 'reserve' AND o.done = 1 AND ${isWindow} THEN s.ahead OR ${freeBegin} > s.now ELSE s.ahead END AS ahead,
  CASE WHEN ${verb} = 'reset' THEN 0 WHEN ${verb} = 'block' AND o.done = 1 THEN CASE WHEN ${amount} = 0 THEN 0 ELSE s.now + ${amount} END ELSE s.blocked END AS blocked
FROM (SELECT CASE
  WHEN ${verb} = 'take' THEN CASE WHEN ${isOpen} THEN least(${room} / greatest(${amount}, 1), ${times}) ELSE 0 END
  WHEN ${verb} = 'lease' THEN CASE WHEN NOT (${isOpen}) THEN 0 ELSE (SELECT CASE WHEN l.ready < ${bound} THEN 0 ELSE l.ready END
    FROM (SELECT least(CASE WHEN ${isWindow} THEN ${room} ELSE ${lentRoom} / ${unit} END, ${amount}) AS ready) AS l) END
  WHEN ${verb} = 'block' THEN (CASE WHEN ${amount} = 0 THEN s.blocked > 0 ELSE ${amount} > greatest(s.blocked - s.now, 0) END)::int
  WHEN ${verb} = 'reserve' THEN (s.blocked = 0 AND ${amount} <= ${cap} AND CASE WHEN ${isWindow}
    THEN ${freeAt} - s.now <= least(${bound}, greatest(${FURTHEST_US}, ${endOfNow} - s.now))
    ELSE s.debt + ${amount} <= least(${cap} + ${bound} * ${pace}, ${deepest}) END)::int
  WHEN ${verb} = 'peek' THEN (${isOpen} AND ${fits})::int
  ELSE 1 END::bigint AS done OFFSET 0) AS o OFFSET 0`
}

/** Columns of a row after a step, from `x` with now, debt, begin, ahead, blocked: a SELECT in the order of {@link WRITTEN}. */
function writtenText({ isWindow, unit, pace, cap }: StepInput): string {
  const paid = `(CASE WHEN ${isWindow} THEN 0 ELSE x.now + x.debt / greatest(${pace}, 1) END)`
  return `SELECT CASE WHEN ${isWindow} THEN x.begin ELSE ${paid} END AS at,
  CASE WHEN ${isWindow} THEN x.debt ELSE x.debt % greatest(${pace}, 1) END AS rest,
  ${unit} AS unit, ${pace} AS pace, ${cap} AS cap,
  CASE WHEN ${isWindow} THEN x.ahead ELSE x.debt > ${cap} END AS ahead, x.blocked, x.now AS seen,
  greatest(x.blocked, CASE WHEN NOT ${isWindow} THEN CASE WHEN x.debt > 0 THEN ${paid} + 1 ELSE x.now END
    WHEN x.debt > 0 OR x.begin > x.now THEN x.begin + ${unit} ELSE x.now END) + 1000000 AS expires OFFSET 0`
}

/** `s`: the state of a row at this moment; `o`: done, and the state after the verb; `w`: the columns after it. */
function chainText(row: StepRow, input: StepInput, now?: string): string {
  return `(${restoredText(row, input, now)}) AS s
CROSS JOIN LATERAL (${steppedText(input)}) AS o
CROSS JOIN LATERAL (SELECT s.now, o.debt, o.begin, o.ahead, o.blocked) AS x
CROSS JOIN LATERAL (${writtenText(input)}) AS w`
}

const NO_BOOKING = { lent: '0::bigint', bound: '0::bigint', booked: '0::bigint', left: '0::bigint', made: '0::bigint' }

/**
 * The numbers of a take: `amount` is that of all its times. `now` is read before the row is locked. A lease of a rate is a take from a debt that
 * lasts for `lentUs` at least.
 */
type TakeInput = Record<'id' | 'version' | 'unit' | 'pace' | 'cap' | 'amount' | 'now' | 'lentUs', string>

/**
 * The insert of takes `n`, and of each key that has a row by its numbers, not banned and not ahead, its update, where the take passes as a whole. That
 * is nearly every take, and each term here costs all of them: what is left over goes to `stepMany`. Within the update, `excluded` is the row of a key
 * that is new, which tells the amount. A time that is earlier than the row's, by the wait for its lock, grants nothing.
 */
function takenText(table: string, source: string, input: TakeInput, isWindow: boolean): string {
  const { id, version, unit, pace, cap, amount, now, lentUs } = input
  const begin = `${now} - ${now} % ${unit}`
  const paid = `${now} + ${lentUs} + ${amount} / ${pace}`
  const fresh = isWindow
    ? { at: begin, rest: amount, expires: `${begin} + ${unit} + 1000000` }
    : { at: paid, rest: `${amount} % ${pace}`, expires: `${paid} + 1000001` }
  const isSame = `t.value = '' AND t.unit = excluded.unit AND t.pace = excluded.pace AND t.cap = excluded.cap AND NOT t.ahead AND t.blocked = 0`
  const from = `(excluded.seen + ${lentUs})`
  const added = `((excluded.at - ${from}) * excluded.pace + excluded.rest)`
  const left = `(CASE WHEN t.at < ${from} THEN 0 ELSE t.rest END + ${added})`
  const at = `(greatest(t.at, ${from}) + ${left} / excluded.pace)`
  const count = `(CASE WHEN t.at = excluded.at THEN t.rest ELSE 0 END + excluded.rest)`
  const next = isWindow
    ? { at: 'excluded.at', rest: count, expires: 'excluded.expires' }
    : { at, rest: `${left} % excluded.pace`, expires: `${at} + 1000001` }
  const passes = isWindow
    ? `t.at <= excluded.at AND ${count} <= excluded.cap`
    : `greatest(least(t.at - excluded.seen, excluded.cap / excluded.pace + 1), ${lentUs}) * excluded.pace + ${left} <= excluded.cap`
  return `INSERT INTO ${table} AS t (key, value, version, at, rest, unit, pace, cap, ahead, blocked, seen, expires)
SELECT ${id}, '', ${version}, ${fresh.at}, ${fresh.rest}, ${unit}, ${pace}, ${cap}, false, 0, ${now}, ${fresh.expires} FROM ${source}
ON CONFLICT (key) DO UPDATE SET version = excluded.version, at = ${next.at}, rest = ${next.rest}, seen = excluded.seen, expires = ${next.expires}
WHERE ${isSame} AND ${passes}`
}

/** Of a take that passed, what its row has of its own. */
const TAKEN = `concat_ws(' ', t.at, t.rest, t.seen) AS taken`

/** `takeRate`, `takeWindow`: the take of one key, `$6` units in all, which passes as a whole; of a rate `$7` is its `lentUs`. No row: it does not, or it needs `stepMany`. */
export function takeOneText(table: string, id: string, locks: string, isWindow: boolean): string {
  const [version, unit, pace, cap, amount] = [2, 3, 4, 5, 6].map((i) => `$${i}::bigint`) as [string, string, string, string, string]
  const source = `(SELECT ${NOW} AS now FROM ${locks} AS locks OFFSET 0) AS n`
  return `${takenText(table, source, { id, version, unit, pace, cap, amount, now: 'n.now', lentUs: '$7::bigint' }, isWindow)} RETURNING ${TAKEN}`
}

/** `takeRates`, `takeWindows`: the same of several keys, each for itself. Lists are arrays; rows are known by the version that was given. */
export function takeManyText(table: string, id: string, locks: string, isWindow: boolean): string {
  const lists = [`(SELECT $1::text::text[])`, ...[2, 3, 4, 5, 6].map((i) => `(SELECT $${i}::text::bigint[])`)].join(', ')
  const source = `(SELECT ${id} AS id, version, unit, pace, cap, amount, ${NOW} AS now
  FROM ${locks} AS locks CROSS JOIN unnest(${lists}) AS j(k, version, unit, pace, cap, amount) ORDER BY 1) AS n`
  const input = {
    id: 'n.id',
    version: 'n.version',
    unit: 'n.unit',
    pace: 'n.pace',
    cap: 'n.cap',
    amount: 'n.amount',
    now: 'n.now',
    lentUs: '$7::bigint',
  }
  return `${takenText(table, source, input, isWindow)} RETURNING t.version::text AS version, ${TAKEN}`
}

function answerOf(t: string): string {
  return `concat_ws(' ', ${[...STEP_COLUMNS.map((name) => (name === 'ahead' ? `${t}.ahead::int` : `${t}.${name}`)), `${t}.seen`].join(', ')}) AS state`
}

/** A row in the form of a step as a value of its own: `decodedValue` reads it. */
export function valueText(t: string): string {
  const state = answerOf(t).replace(/ AS state$/, '')
  return `CASE WHEN ${t}.value = '' THEN '\\x02'::bytea || convert_to(${state}, 'UTF8') ELSE ${t}.value END`
}

/** The lists of a statement on several keys, by name. A subquery hides how long they are: the plan is made once. */
const KEY_LISTS = ['k', 'n', 'unit', 'pace', 'cap', 'fv', 'fat', 'frest', 'fahead', 'fblocked'] as const
const STEP_LISTS = ['verb', 'lent', 'amount', 'times', 'bound', 'booked', 'remains', 'made'] as const

function listsText(names: readonly string[]): string {
  const lists = names.map((_, i) => `(SELECT string_to_array($${i + 1}::text, ','))`)
  return `unnest(${lists.join(', ')}) WITH ORDINALITY AS j(${names.join(', ')}, i)`
}

const NUMBER = (name: string): string => `${name}::bigint AS ${name}`

/** The keys of a statement, locked in their order, with the state of each as it is in force. */
function lockedText(
  table: string,
  id: string,
  locks: string,
  wait: '' | ' SKIP LOCKED',
  lists: readonly string[],
  more: readonly string[],
): string {
  const isFrom = 'l.version = r.fv'
  const state = STATE_COLUMNS.map((name) => {
    // A swapped value comes in the requested numbers.
    const from = ['unit', 'pace', 'cap'].includes(name) ? `r.${name}` : name === 'seen' ? '0' : `r.f${name}`
    return `CASE WHEN l.value = '' THEN l.${name} WHEN ${isFrom} THEN ${from} ELSE ${FRESH[name]} END AS s${name}`
  })
  return `input AS MATERIALIZED (
  SELECT i, ${id} AS id, n::bigint AS version, ${['unit', 'pace', 'cap', ...more].map(NUMBER).join(', ')}${lists.includes('verb') ? ', verb' : ''},
    nullif(fv, '')::bigint AS fv, fat::bigint AS fat, frest::bigint AS frest, fahead = '1' AS fahead, fblocked::bigint AS fblocked
  FROM ${locks} AS locks CROSS JOIN ${listsText(lists)} ORDER BY 2
), seen AS MATERIALIZED (
  SELECT r.i, t.* FROM (SELECT * FROM input ORDER BY id OFFSET 0) AS r
  CROSS JOIN LATERAL (SELECT version, value, expires, ${STATE_COLUMNS.join(', ')} FROM ${table} WHERE key = r.id FOR UPDATE${wait}) AS t
), rows AS MATERIALIZED (
  SELECT r.*, l.version AS old, l.value AS was, l.value IS NOT NULL AS is_there,
    coalesce(l.value <> '' AND l.expires > ${NOW} AND (${isFrom}) IS NOT TRUE, false) AS is_other, ${state.join(', ')}
  FROM input AS r LEFT JOIN seen AS l ON l.i = r.i
)`
}

function storedRow(): StepRow {
  return Object.fromEntries(STATE_COLUMNS.map((name) => [name, `r.s${name}`])) as StepRow
}

/** `stepMany`: steps on different keys, each for itself. */
export function stepManyText(table: string, id: string, locks: string, wait: '' | ' SKIP LOCKED' = ''): string {
  // A row that is locked by others is not a key that is new.
  const isSkipped = wait === '' ? '' : `NOT s.is_there AND EXISTS (SELECT FROM ${table} AS t WHERE t.key = s.id) OR `
  return `WITH ${steppedRowsText(table, id, locks, wait, 'r.is_other')}
SELECT CASE WHEN s.is_other THEN 'other' WHEN ${isSkipped}s.is_new AND NOT s.is_there AND made.key IS NULL THEN 'busy' ELSE s.done::text END AS done,
  ${REPLY}
FROM state AS s LEFT JOIN made ON made.key = s.id ORDER BY s.i`
}

/** `stepAll`: steps on different keys, all or none. */
export function stepAllText(table: string, id: string, locks: string): string {
  return `WITH ${steppedRowsText(table, id, locks, '', '(SELECT bool_or(is_other) FROM rows)')}, ${WHOLE}
SELECT CASE WHEN s.is_other THEN 'other' ELSE s.done::text END AS done, ${REPLY}, one
FROM state AS s, whole ORDER BY s.i`
}

/** @param isLeft whether a row `r` stays as it is. */
function steppedRowsText(table: string, id: string, locks: string, wait: '' | ' SKIP LOCKED', isLeft: string): string {
  const input: StepInput = {
    verb: 'r.verb',
    isWindow: '(r.pace = 0)',
    unit: 'r.unit',
    pace: 'r.pace',
    cap: 'r.cap',
    lent: 'r.lent',
    amount: 'r.amount',
    times: 'r.times',
    bound: 'r.bound',
    booked: 'r.booked',
    left: 'r.remains',
    made: 'r.made',
  }
  const more = STEP_LISTS.filter((name) => name !== 'verb')
  return `${lockedText(table, id, locks, wait, [...KEY_LISTS, ...STEP_LISTS], more)}, state AS MATERIALIZED (
  SELECT r.i, r.id, r.version, r.old, r.was, r.is_there, r.is_other, o.done, w.*,
    NOT ${isLeft} AND (r.verb <> 'peek' AND o.done > 0 OR coalesce(r.was <> '', false)) AS is_new
  FROM rows AS r CROSS JOIN LATERAL ${chainText(storedRow(), input)}
), ${writesText(table)}`
}

/** What the reply says of a row `s` beside what was done. */
const REPLY = `${answerOf('s')}, CASE WHEN s.is_other THEN s.old::text END AS version, CASE WHEN s.is_other THEN s.was END AS value, ${NOW}::text AS now`

/** Another transaction made one of the keys meanwhile: nothing is written. */
const WHOLE = `whole AS MATERIALIZED (
  SELECT 1 / (CASE WHEN (SELECT count(*) FROM made) = (SELECT count(*) FROM state WHERE is_new AND NOT is_there) THEN 1 ELSE 0 END) AS one
)`

function writesText(table: string): string {
  const names = WRITTEN.split(', ')
  return `changed AS (
  UPDATE ${table} AS t SET version = s.version, value = '', ${names.map((name) => `${name} = s.${name}`).join(', ')}
  FROM state AS s WHERE t.key = s.id AND s.is_new AND s.is_there
), made AS (
  INSERT INTO ${table} AS t (key, version, value, ${WRITTEN})
  SELECT s.id, s.version, '', ${names.map((name) => `s.${name}`).join(', ')} FROM state AS s WHERE s.is_new AND NOT s.is_there ORDER BY s.id
  ON CONFLICT (key) DO NOTHING RETURNING key
)`
}

/**
 * `takeAll`: takes of several keys at once, all or none, one after another in the order of their groups. Groups may share keys: so all users of a
 * tenant go together. What a group leaves is computed on the room of all keys, as a list.
 */
export function takeAllText(table: string, id: string, locks: string): string {
  const input: StepInput = {
    verb: `'take'`,
    isWindow: '(r.pace = 0)',
    unit: 'r.unit',
    pace: 'r.pace',
    cap: 'r.cap',
    amount: '1::bigint',
    times: 'r.taken',
    ...NO_BOOKING,
  }
  const at = KEY_LISTS.length
  return `WITH RECURSIVE ${lockedText(table, id, locks, '', KEY_LISTS, [])}, clock AS MATERIALIZED (SELECT ${NOW} AS now FROM (SELECT count(*) FROM seen) AS c
), rooms AS MATERIALIZED (
  SELECT array_agg(CASE WHEN r.is_other OR s.blocked <> 0 OR s.begin > s.now THEN 0 ELSE greatest(r.cap - s.debt, 0) END ORDER BY r.i) AS room
  FROM rows AS r CROSS JOIN LATERAL (${restoredText(storedRow(), input, '(SELECT now FROM clock)')}) AS s
), groups AS MATERIALIZED (
  SELECT g, string_to_array(ks, ' ')::int[] AS ks, string_to_array(amounts, ' ')::bigint[] AS amounts, times::bigint AS times
  FROM unnest(${[1, 2, 3].map((i) => `(SELECT string_to_array($${at + i}::text, ','))`).join(', ')}) WITH ORDINALITY AS j(ks, amounts, times, g)
), fold(g, room, done) AS (
  SELECT 0::bigint, room, 0::bigint FROM rooms
  UNION ALL
  SELECT f.g + 1, CASE WHEN n.done = 0 THEN f.room ELSE (
    SELECT array_agg(f.room[a.k] - n.done * coalesce(n.amounts[array_position(n.ks, a.k)], 0) ORDER BY a.k) FROM generate_subscripts(f.room, 1) AS a(k)
  ) END, n.done
  FROM fold AS f JOIN LATERAL (
    SELECT g.ks, g.amounts, least(g.times, (SELECT min(f.room[u.k] / greatest(u.amount, 1)) FROM unnest(g.ks, g.amounts) AS u(k, amount))) AS done
    FROM groups AS g WHERE g.g = f.g + 1
  ) AS n ON true
), taken AS MATERIALIZED (
  SELECT first.room AS before, last.room AS after, (SELECT string_agg(done::text, ' ' ORDER BY g) FROM fold WHERE g > 0) AS dones
  FROM rooms AS first, (SELECT room FROM fold ORDER BY g DESC LIMIT 1) AS last
), state AS MATERIALIZED (
  SELECT r.i, r.id, r.version, r.old, r.was, r.is_there, r.is_other, r.dones, w.*,
    NOT r.is_other AND (r.taken > 0 OR coalesce(r.was <> '', false)) AS is_new
  FROM (SELECT rows.*, taken.dones, taken.before[rows.i] - taken.after[rows.i] AS taken FROM rows, taken) AS r
  CROSS JOIN LATERAL ${chainText(storedRow(), input, '(SELECT now FROM clock)')}
), ${writesText(table)}, ${WHOLE}
SELECT CASE WHEN s.is_other THEN 'other' ELSE s.dones END AS done, ${REPLY}, one
FROM state AS s, whole ORDER BY s.i`
}
