import { fittedKey } from 'sluicegate/keys'
import { UsageError } from '../terminal/usage-error.js'
import type { LogRecord } from './log-reader.js'

/** Which requests a policy counts, by which key and cost. */
export interface RequestRule {
  readonly key: KeyTemplate
  /** Undefined: all requests. */
  readonly filter: RequestFilter | undefined
}

const VARIABLE = /\$(?:\{(\w+)\}|(\w+))/g

/** A key made from variables of a line: `$remote_addr`, or `$remote_addr|$request_method`. */
export class KeyTemplate {
  readonly text: string
  readonly names: readonly string[]
  readonly #literals: readonly string[]
  readonly #isComposed: boolean

  /** @throws {UsageError} for a text without a variable: everybody would share one key. */
  constructor(text: string) {
    const names: string[] = []
    const literals: string[] = []
    let last = 0
    for (const match of text.matchAll(VARIABLE)) {
      literals.push(text.slice(last, match.index))
      names.push((match[1] ?? match[2]) as string)
      last = match.index + match[0].length
    }
    if (names.length === 0) throw new UsageError(`--key: "${text}" names no variable, such as $remote_addr`)
    literals.push(text.slice(last))
    this.text = text
    this.names = names
    this.#literals = literals
    this.#isComposed = names.length > 1
  }

  /** The key of a request; undefined where a variable is empty or `-`, as a server writes what it does not know. */
  keyOf(record: LogRecord): string | undefined {
    let key = this.#literals[0] as string
    for (let i = 0; i < this.names.length; i++) {
      const value = record.value(this.names[i] as string)
      if (value === '' || value === '-') return undefined
      key += (this.#isComposed ? escaped(value) : value) + (this.#literals[i + 1] as string)
    }
    return fittedKey(key)
  }
}

/** Requests of one method, of a path or of all paths that begin alike: `POST /login`, `/api/*`, `GET`. */
export class RequestFilter {
  readonly text: string
  readonly names: readonly string[]
  readonly #method: string | undefined
  readonly #path: string | undefined
  readonly #isPrefix: boolean

  constructor(text: string) {
    const [, method, path] = /^(?:([A-Z]+)(?: |$))?(\/\S*)?$/.exec(text) ?? []
    if (method === undefined && path === undefined)
      throw new UsageError(`--match: "${text}" is no method and path, such as "POST /login" or "/api/*"`)
    this.text = text
    this.#method = method
    this.#isPrefix = path?.endsWith('*') ?? false
    this.#path = this.#isPrefix ? path?.slice(0, -1) : path
    this.names = [...(method === undefined ? [] : ['request_method']), ...(path === undefined ? [] : ['uri'])]
  }

  matches(record: LogRecord): boolean {
    if (this.#method !== undefined && record.value('request_method') !== this.#method) return false
    if (this.#path === undefined) return true
    const path = record.value('uri')
    return this.#isPrefix ? path.startsWith(this.#path) : path === this.#path
  }
}

/** So that no value of one variable makes the key of another pair of values. */
function escaped(value: string): string {
  return value.includes('|') || value.includes('\\') ? value.replace(/[|\\]/g, '\\$&') : value
}
