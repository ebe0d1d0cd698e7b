import type { TierData, WrittenTarget } from './tier-data.js'

/** Records a fault at a place of the file. */
export type RowFault = (line: number, column: number, reason: string) => void

/** Rows between two points at which a reader lets others run. */
const ROWS_PER_SLICE = 5_000
const COLUMNS = ['key', 'tier', 'limit', 'window', 'burst'] as const
type Column = (typeof COLUMNS)[number]
type Written = Partial<Record<Column, string | number>>

/** The target that a row describes; undefined after a fault. */
function targetOf(row: Written, line: number, column: number, fault: RowFault): WrittenTarget | undefined {
  const { tier, limit, window, burst } = row
  const place = { line, column, path: '' }
  if (tier !== undefined) {
    const other = limit ?? window ?? burst
    if (typeof tier === 'string' && other === undefined) return { tier, limit: undefined, window: undefined, burst: undefined, ...place }
    fault(line, column, other === undefined ? 'tier must be a text' : 'has a tier and a limit of its own: give one of them')
    return undefined
  }
  if (limit === undefined) fault(line, column, 'needs a tier or a limit')
  else if (!isCount(limit)) fault(line, column, 'limit must be a number')
  else if (burst !== undefined && !isCount(burst)) fault(line, column, 'burst must be a number')
  else if (window !== undefined && typeof window !== 'string') fault(line, column, 'window must be a text, for example 1m')
  else return { tier: undefined, limit: Number(limit), window, burst: burst === undefined ? undefined : Number(burst), ...place }
  return undefined
}

function isCount(value: string | number): boolean {
  return typeof value === 'number' || /^\d{1,15}$/.test(value)
}

function addRow(data: TierData, key: string, row: Written, line: number, column: number, fault: RowFault): void {
  const target = targetOf(row, line, column, fault)
  const reason = target && data.add(key, target)
  if (reason !== undefined) fault(line, column, reason)
}

/**
 * CSV (RFC 4180): a first line with names of columns, `key` and any of `tier`, `limit`, `window` and `burst`, then a line for each key. Yields now
 * and then.
 */
export function* readCsv(text: string, data: TierData, fault: RowFault): Generator<void> {
  let at = 0
  let line = 0
  let columns: Column[] | undefined
  while (at < text.length) {
    line++
    const row = csvRow(text, at, (column, reason) => fault(line, column, reason))
    const first = line
    for (let i = text.indexOf('\n', at); i >= 0 && i < row.end; i = text.indexOf('\n', i + 1)) line++
    at = row.end + 1
    if (row.fields.length === 1 && row.fields[0] === '') continue
    if (columns === undefined) {
      columns = csvColumns(row.fields, (reason) => fault(first, 1, reason))
      if (columns === undefined) return
      continue
    }
    if (row.fields.length !== columns.length) fault(first, 1, `has ${row.fields.length} fields, and the first line has ${columns.length}`)
    else {
      const written: Written = {}
      for (const [i, column] of columns.entries()) if (row.fields[i] !== '') written[column] = row.fields[i] as string
      addRow(data, (written.key as string | undefined) ?? '', written, first, 1, fault)
    }
    if (line % ROWS_PER_SLICE === 0) yield
  }
}

function csvColumns(fields: readonly string[], fault: (reason: string) => void): Column[] | undefined {
  const names = fields.map((field) => field.trim())
  const unknown = names.find((name) => !COLUMNS.includes(name as Column))
  if (unknown !== undefined)
    fault(`the first line must name the columns: ${COLUMNS.join(', ')}; not ${JSON.stringify(unknown.slice(0, 60))}`)
  else if (new Set(names).size < names.length) fault('names a column twice')
  else if (!names.includes('key') || !(names.includes('tier') || names.includes('limit'))) fault('needs the column key, and tier or limit')
  else return names as Column[]
  return undefined
}

/** The fields of the row at `start`, and where it ends. */
function csvRow(text: string, start: number, fault: (column: number, reason: string) => void): { fields: string[]; end: number } {
  const newline = text.indexOf('\n', start)
  const end = newline < 0 ? text.length : newline
  const plain = text.slice(start, text[end - 1] === '\r' ? end - 1 : end)
  if (!plain.includes('"')) return { fields: plain.split(','), end }
  const fields: string[] = []
  let at = start
  for (;;) {
    let field = ''
    if (text[at] === '"') {
      at++
      for (;;) {
        const quote = text.indexOf('"', at)
        if (quote < 0) {
          fault(at - start, 'has a quote that does not end')
          return { fields, end: text.length }
        }
        field += text.slice(at, quote)
        at = quote + 1
        if (text[at] !== '"') break
        field += '"'
        at++
      }
    }
    let stop = at
    while (stop < text.length && text[stop] !== ',' && text[stop] !== '\n') stop++
    field += text.slice(at, text[stop - 1] === '\r' && text[stop] !== ',' && stop > at ? stop - 1 : stop)
    fields.push(field)
    at = stop
    if (text[at] !== ',') return { fields, end: at }
    at++
  }
}

/** An object with a member for each key: the name of a tier, or an object with `limit`, `window` and `burst`. Yields now and then. */
export function* readJson(text: string, data: TierData, fault: RowFault): Generator<void> {
  const tokens = new JsonTokens(text)
  const expect = (wanted: string): boolean => {
    if (tokens.next() === wanted) return true
    fault(tokens.line, tokens.column, `is not the JSON of an object of keys: ${wanted} is missing here`)
    return false
  }
  if (!expect('{')) return
  let rows = 0
  for (let token = tokens.next(); token !== '}' || rows > 0; token = tokens.next()) {
    const { line, column } = tokens
    if (!token.startsWith('"')) return fault(line, column, 'is not the JSON of an object of keys: a key in quotes is missing here')
    const key = textOf(token)
    if (!expect(':')) return
    const value = tokens.next()
    const row = value === '{' ? jsonRow(tokens, fault) : value.startsWith('"') ? { tier: textOf(value) ?? '' } : undefined
    if (key === undefined || row === undefined) return fault(line, column, 'must have a tier, or an object with a limit')
    if (row !== 'fault') addRow(data, key, row, line, column, fault)
    const after = tokens.next()
    if (after === '}') break
    if (after !== ',') return fault(tokens.line, tokens.column, 'is not the JSON of an object of keys: , or } is missing here')
    if (++rows % ROWS_PER_SLICE === 0) yield
  }
  if (tokens.next() !== '') fault(tokens.line, tokens.column, 'has something after the object')
}

/** The members up to the end of an object; `fault` after one that is recorded, undefined where the text cannot be read on. */
function jsonRow(tokens: JsonTokens, fault: RowFault): Written | 'fault' | undefined {
  const row: Written = {}
  let isWrong = false
  for (let token = tokens.next(); token !== '}'; token = tokens.next()) {
    const { line, column } = tokens
    const name = token.startsWith('"') ? textOf(token) : undefined
    if (name === undefined || tokens.next() !== ':') return undefined
    const value = tokens.next()
    if (!COLUMNS.includes(name as Column) || name === 'key' || Object.hasOwn(row, name)) {
      isWrong = true
      fault(
        line,
        column,
        `${JSON.stringify(name.slice(0, 60))} is ${Object.hasOwn(row, name) ? 'given twice' : 'no option: there are tier, limit, window and burst'}`,
      )
    } else if (value.startsWith('"')) row[name as Column] = textOf(value) ?? ''
    else if (Number.isFinite(Number(value)) && value !== '') row[name as Column] = Number(value)
    else return undefined
    const after = tokens.next()
    if (after === '}') break
    if (after !== ',') return undefined
  }
  return isWrong ? 'fault' : row
}

/** A text as its token means it; undefined for one that is no JSON. */
function textOf(token: string): string | undefined {
  try {
    return JSON.parse(token) as string
  } catch {
    return undefined
  }
}

/** The tokens of a JSON text one by one, with the place of the last one. */
class JsonTokens {
  readonly #text: string
  readonly #token = /[\t\n\r ]*("(?:[^"\\\n]|\\.)*"|[{}:,]|-?\d[\d.eE+-]*|true|false|null)/y
  #lineStart = 0
  #at = 0
  line = 1

  constructor(text: string) {
    this.#text = text
  }

  get column(): number {
    return this.#at - this.#lineStart + 1
  }

  /** Empty at the end of the text, and where there is none. */
  next(): string {
    const before = this.#token.lastIndex
    const token = this.#token.exec(this.#text)?.[1]
    this.#at =
      token === undefined
        ? before + (/^[\t\n\r ]*/.exec(this.#text.slice(before, before + 1_000))?.[0].length ?? 0)
        : this.#token.lastIndex - token.length
    for (let i = this.#text.indexOf('\n', Math.max(before, this.#lineStart)); i >= 0 && i < this.#at; i = this.#text.indexOf('\n', i + 1)) {
      this.line++
      this.#lineStart = i + 1
    }
    if (token !== undefined) return token
    this.#token.lastIndex = this.#at
    return this.#at >= this.#text.length ? '' : 'other'
  }
}
