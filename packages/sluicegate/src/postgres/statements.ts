import { NOW, stepAllText, stepManyText, takeAllText, takeManyText, takeOneText, valueText } from './step-texts.js'
import { quotedTable } from './table-name.js'

/** A statement under a name for the server to keep it by: another text has another name. */
export interface Statement {
  readonly name: string
  readonly text: string
  /** Its columns, where all of them are text. */
  readonly columns?: readonly string[]
}

/**
 * The statements on one table. Each is one round trip, and a transaction by itself. Bytes are given as hexadecimal text: `postgres` encodes
 * those of type bytea twice when it repeats a statement.
 */
export interface Statements {
  readonly read: Statement
  readonly create: Statement
  readonly swap: Statement
  readonly createNow: Statement
  readonly swapNow: Statement
  readonly readAll: Statement
  readonly swapAll: Statement
  readonly createMany: Statement
  readonly swapMany: Statement
  readonly sweep: Statement
  readonly server: Statement
  /** Only of a table with the columns of steps. */
  readonly takeRate?: Statement
  readonly takeWindow?: Statement
  readonly takeRates?: Statement
  readonly takeWindows?: Statement
  readonly stepMany?: Statement
  readonly stepFree?: Statement
  readonly stepAll?: Statement
  readonly takeAll?: Statement
}

/**
 * How long a statement waits for a row that others have locked. It is set within the statement and ends with it, also behind a pooler that gives
 * each transaction another connection.
 */
const locksFor = (ms: number): string => `(SELECT set_config('lock_timeout', '${ms}ms', true) OFFSET 0)`
const LOCKS = locksFor(50)
/** For several keys: where one is locked, the others are to go on. */
const SHORT_LOCKS = locksFor(20)
/** For a key that was locked of late. */
const NO_LOCKS = locksFor(1)

/** Where a connection has led to. */
const SERVER = `SELECT host(inet_server_addr()) AS host, inet_server_port()::text AS port, pg_is_in_recovery()::text AS standby`

/** Keys of more bytes are stored as their SHA-256 after a byte that no key begins with: an index takes 2,704 bytes at most. */
const LONGEST_KEY = 512

/** Rows that one sweep looks at. */
export const SWEPT_ROWS = 200

const idOf = (key: string): string =>
  `CASE WHEN octet_length(${key}) <= ${LONGEST_KEY} THEN ${key} ELSE '\\xff'::bytea || sha256(${key}) END`

/** @param hasSteps whether the table has the columns of steps: else rows are swapped alone. */
export function statementsOf(table: string, hasSteps: boolean): Statements {
  const name = quotedTable(table)
  const shownOf = hasSteps ? valueText : (t: string): string => `${t}.value`
  const texts = {
    ...singleTexts(name, shownOf),
    ...nowTexts(name, shownOf),
    ...severalTexts(name, shownOf),
    ...manyTexts(name, shownOf),
    ...(hasSteps && stepTexts(name)),
    sweep: sweepText(name),
    server: SERVER,
  }
  const named = Object.entries(texts).map(([verb, text]) => [
    verb,
    { name: `sluicegate_1_${verb}_${hashOf(text)}`, text, columns: COLUMNS[verb] },
  ])
  return Object.fromEntries(named) as unknown as Statements
}

/** Of the statements that nearly every take needs. */
const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  takeRate: ['taken'],
  takeWindow: ['taken'],
  takeRates: ['version', 'taken'],
  takeWindows: ['version', 'taken'],
}

type ValueOf = (t: string) => string

/** Only of a table with the columns of steps. */
export type StepVerb = 'takeRate' | 'takeWindow' | 'takeRates' | 'takeWindows' | 'stepMany' | 'stepFree' | 'stepAll' | 'takeAll'

function stepTexts(table: string): Record<StepVerb, string> {
  const [one, each] = [idOf("decode($1::text, 'hex')"), idOf("decode(k, 'hex')")]
  return {
    takeRate: takeOneText(table, one, LOCKS, false),
    takeWindow: takeOneText(table, one, LOCKS, true),
    takeRates: takeManyText(table, each, SHORT_LOCKS, false),
    takeWindows: takeManyText(table, each, SHORT_LOCKS, true),
    stepMany: stepManyText(table, each, SHORT_LOCKS),
    stepFree: stepManyText(table, each, LOCKS, ' SKIP LOCKED'),
    stepAll: stepAllText(table, each, LOCKS),
    takeAll: takeAllText(table, each, LOCKS),
  }
}

/**
 * `create`: the arbiter of ON CONFLICT is the newest row, whatever the statement's snapshot is. A loser writes the row as it is, and so gets it.
 *
 * `swap`: the UPDATE waits for a statement that changes the row, and then decides by what that wrote. A loser writes the row as it is here too;
 * under repeatable read and serializable the server refuses with 40001 instead. No row: the key has no value, or one that has expired.
 */
function singleTexts(table: string, shownOf: ValueOf, locks = LOCKS): Record<'read' | 'create' | 'swap', string> {
  const id = idOf("decode($1::text, 'hex')")
  const free = 't.expires <= excluded.expires - $4::bigint'
  const fits = 't.version = $5::bigint'
  return {
    read: `SELECT t.version::text AS version, ${shownOf('t')} AS value, ${NOW}::text AS now
FROM (SELECT 1) AS one LEFT JOIN ${table} AS t ON t.key = ${id} AND t.expires > ${NOW}`,
    create: `INSERT INTO ${table} AS t (key, version, value, expires) SELECT ${id}, $2::bigint, decode($3::text, 'hex'), ${NOW} + $4::bigint FROM ${locks} AS locks
ON CONFLICT (key) DO UPDATE SET
  version = CASE WHEN ${free} THEN excluded.version ELSE t.version END,
  value = CASE WHEN ${free} THEN excluded.value ELSE t.value END,
  expires = CASE WHEN ${free} THEN excluded.expires ELSE t.expires END
RETURNING (t.version = $2::bigint)::text AS swapped, t.version::text AS version, ${shownOf('t')} AS value, ${NOW}::text AS now`,
    swap: `UPDATE ${table} AS t SET
  version = CASE WHEN ${fits} THEN $2::bigint ELSE t.version END,
  value = CASE WHEN ${fits} THEN decode($3::text, 'hex') ELSE t.value END,
  expires = CASE WHEN ${fits} THEN ${NOW} + $4::bigint ELSE t.expires END
FROM ${locks} AS locks WHERE t.key = ${id} AND t.expires > ${NOW}
RETURNING (t.version = $2::bigint)::text AS swapped, t.version::text AS version,
  CASE WHEN t.version <> $2::bigint THEN ${shownOf('t')} END AS value, ${NOW}::text AS now`,
  }
}

/** The same for keys that were locked of late. */
function nowTexts(table: string, shownOf: ValueOf): Record<'createNow' | 'swapNow', string> {
  const { create, swap } = singleTexts(table, shownOf, NO_LOCKS)
  return { createNow: create, swapNow: swap }
}

/** Several keys come as one JSON text. */
function severalTexts(table: string, shownOf: ValueOf): Record<'readAll' | 'swapAll', string> {
  return {
    readAll: `WITH input AS MATERIALIZED (
  SELECT ord, decode(k, 'hex') AS given FROM json_array_elements_text($1::text::json) WITH ORDINALITY AS j(k, ord)
)
SELECT t.version::text AS version, ${shownOf('t')} AS value, ${NOW}::text AS now
FROM input LEFT JOIN ${table} AS t ON t.key = ${idOf('given')} AND t.expires > ${NOW} ORDER BY ord`,
    swapAll: `WITH input AS MATERIALIZED (
  SELECT i, ${idOf("decode(k, 'hex')")} AS id, w AS wanted, n AS version, decode(v, 'hex') AS value, t AS ttl
  FROM ${LOCKS} AS locks CROSS JOIN json_to_recordset($1::text::json) AS j(i int, k text, w bigint, n bigint, v text, t bigint)
), seen AS MATERIALIZED (
  SELECT t.key, t.version, ${shownOf('t')} AS value, t.expires FROM ${table} AS t WHERE t.key IN (SELECT id FROM input) ORDER BY t.key FOR UPDATE
), state AS MATERIALIZED (
  SELECT input.*, seen.version AS old, seen.value AS was, ${NOW} AS now
  FROM input LEFT JOIN seen ON seen.key = input.id AND seen.expires > ${NOW}
), done AS (
  INSERT INTO ${table} AS t (key, version, value, expires)
  SELECT id, version, value, now + ttl FROM state
  WHERE (SELECT bool_and(wanted IS NOT DISTINCT FROM old) FROM state) ORDER BY id
  ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value, expires = excluded.expires
  WHERE t.expires <= ${NOW} OR t.version = (SELECT wanted FROM state WHERE state.id = t.key)
  RETURNING t.key
), counted AS MATERIALIZED (SELECT count(*) AS written FROM done)
SELECT (written > 0)::text AS swapped, old::text AS version, was AS value, ${NOW}::text AS now,
  1 / (CASE WHEN written IN (0, (SELECT count(*) FROM input)) THEN 1 ELSE 0 END) AS whole
FROM state, counted ORDER BY i`,
  }
}

/**
 * Each key for itself; lists with commas. Rows are locked in the order of their keys, so that two of these wait for each other never.
 * A key that another one of the same moment has made since is written as it is, and so got.
 */
function manyTexts(table: string, shownOf: ValueOf): Record<'createMany' | 'swapMany', string> {
  const list = (n: number): string => `(SELECT string_to_array($${n}::text, ','))`
  const input = (more: string, lists: string, names: string): string => `WITH input AS MATERIALIZED (
  SELECT i, ${idOf("decode(k, 'hex')")} AS id, n::bigint AS version, decode(v, 'hex') AS value, t::bigint AS ttl${more}, ${NOW} AS now
  FROM ${SHORT_LOCKS} AS locks CROSS JOIN unnest(${list(1)}, ${list(2)}, ${list(3)}, ${list(4)}${lists}) WITH ORDINALITY AS j(k, n, v, t${names}, i) ORDER BY 2
)`
  const free = 't.expires <= (SELECT min(now) FROM input)'
  return {
    createMany: `${input('', '', '')}, done AS (
  INSERT INTO ${table} AS t (key, version, value, expires) SELECT id, version, value, now + ttl FROM input ORDER BY id
  ON CONFLICT (key) DO UPDATE SET
    version = CASE WHEN ${free} THEN excluded.version ELSE t.version END,
    value = CASE WHEN ${free} THEN excluded.value ELSE t.value END,
    expires = CASE WHEN ${free} THEN excluded.expires ELSE t.expires END
  RETURNING t.key, t.version, ${shownOf('t')} AS value
)
SELECT (done.version = input.version)::text AS swapped, done.version::text AS version,
  CASE WHEN done.version <> input.version THEN done.value END AS value, ${NOW}::text AS now
FROM input JOIN done ON done.key = input.id ORDER BY i`,
    swapMany: `${input(', w::bigint AS wanted', `, ${list(5)}`, ', w')}, seen AS MATERIALIZED (
  SELECT input.*, t.version AS old, t.value AS was, t.expires AS until
  FROM (SELECT * FROM input ORDER BY id OFFSET 0) AS input
  CROSS JOIN LATERAL (SELECT t.version, ${shownOf('t')} AS value, t.expires FROM ${table} AS t WHERE t.key = input.id FOR UPDATE) AS t
), done AS (
  UPDATE ${table} AS t SET version = seen.version, value = seen.value, expires = ${NOW} + seen.ttl
  FROM seen WHERE t.key = seen.id AND seen.old = seen.wanted AND seen.until > ${NOW}
  RETURNING t.key
)
SELECT (done.key IS NOT NULL)::text AS swapped, CASE WHEN seen.until > ${NOW} THEN seen.old::text END AS version,
  CASE WHEN seen.until > ${NOW} AND done.key IS NULL THEN seen.was END AS value, ${NOW}::text AS now
FROM input LEFT JOIN seen ON seen.id = input.id LEFT JOIN done ON done.key = input.id ORDER BY input.i`,
  }
}

/** In the order of keys from where the last one ended; locked rows stay for the next round. Keys as arrays: a join reads a table of some thousand rows as a whole. */
function sweepText(table: string): string {
  return `WITH seen AS MATERIALIZED (
  SELECT key, expires FROM ${table} WHERE key > decode($1::text, 'hex') ORDER BY key LIMIT ${SWEPT_ROWS}
), free AS MATERIALIZED (
  SELECT t.key FROM ${table} AS t WHERE t.key = ANY (ARRAY(SELECT key FROM seen WHERE seen.expires <= ${NOW})) AND t.expires <= ${NOW}
  FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM ${table} AS t WHERE t.key = ANY (ARRAY(SELECT key FROM free)) AND t.expires <= ${NOW} RETURNING 1
)
SELECT (SELECT count(*) FROM seen)::text AS seen, (SELECT count(*) FROM gone)::text AS gone,
  (SELECT key FROM seen ORDER BY key DESC LIMIT 1) AS last`
}

/** FNV-1a, 32 bits. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash >>> 0).toString(16)
}
