import { UsageError } from '../terminal/usage-error.js'

/** What replay can read from one line: nginx's names. Any other `$name` of a format is read too, by that name. */
export const COMMON = '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent'
export const COMBINED = `${COMMON} "$http_referer" "$http_user_agent"`
/** `option httplog` of HAProxy. Captured headers are in `$counts`. */
export const HAPROXY = '$remote_addr [$time_local] $frontend $server $timers $status $bytes_sent $counts "$request"'

/** Apache's directives in nginx's names. Modifiers such as `%>s` and `%!200r` are dropped. */
const APACHE: Readonly<Record<string, string>> = {
  h: '$remote_addr',
  a: '$remote_addr',
  l: '$remote_logname',
  u: '$remote_user',
  t: '[$time_local]',
  r: '$request',
  s: '$status',
  b: '$body_bytes_sent',
  B: '$body_bytes_sent',
  O: '$bytes_sent',
  I: '$request_length',
  D: '$request_time_us',
  T: '$request_time',
  m: '$request_method',
  U: '$uri',
  q: '$query',
  v: '$server_name',
  V: '$host',
  p: '$server_port',
  H: '$server_protocol',
}

const VARIABLE = /\$(?:\{(\w+)\}|(\w+))/g
const DIRECTIVE = /%[<>!\d,]*(?:\{([^}]*)\}([a-z]+)|([a-zA-Z%]))/g

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** A format of lines, compiled: where each variable stands in a line, found without making a string. */
export class LineFormat {
  /** Names of the variables, in order; the same name may come twice. */
  readonly names: readonly string[]
  /** `spans[2 * i]` to `spans[2 * i + 1]` is variable `i` of the line that {@link LineFormat.parse} read last. */
  readonly spans: Int32Array
  /** The text before the first variable, and after each. */
  readonly #literals: readonly Uint8Array[]
  /** Variables behind the last one that is needed are not looked for. */
  #needed: number

  /**
   * @param text nginx's `log_format`, such as {@link COMBINED}, or Apache's `LogFormat`, such as `%h %l %u %t "%r" %>s %b`.
   * @throws {UsageError} for two variables without text between them, or none at all.
   */
  constructor(text: string) {
    const template = text.includes('%') && !text.includes('$') ? fromApache(text) : text
    const names: string[] = []
    const literals: Uint8Array[] = []
    let last = 0
    for (const match of template.matchAll(VARIABLE)) {
      const literal = template.slice(last, match.index)
      if (literal === '' && names.length > 0)
        throw new UsageError(`--format: between $${names.at(-1)} and ${match[0]} there must be a text, such as a space`)
      literals.push(Buffer.from(literal))
      names.push((match[1] ?? match[2]) as string)
      last = match.index + match[0].length
    }
    if (names.length === 0) throw new UsageError(`--format: "${text}" names no variable, such as $remote_addr`)
    literals.push(Buffer.from(template.slice(last)))
    this.names = names
    this.#literals = literals
    this.#needed = names.length
    this.spans = new Int32Array(2 * names.length)
  }

  /** The place of a variable in {@link LineFormat.spans}; -1 for one that the format does not have. */
  indexOf(name: string): number {
    return this.names.indexOf(name)
  }

  /** From now on only these variables are read; a line may end in anything behind them. */
  readOnly(names: Iterable<string>): void {
    this.#needed = Math.max(0, ...Array.from(names, (name) => this.indexOf(name) + 1))
  }

  /** Finds the variables in `bytes` from `start` to `end`. False for a line of another form. */
  parse(bytes: Uint8Array, start: number, end: number): boolean {
    const literals = this.#literals
    const spans = this.spans
    const first = literals[0] as Uint8Array
    if (!isAt(first, bytes, start, end)) return false
    let at = start + first.length
    for (let i = 0; i < this.#needed; i++) {
      const literal = literals[i + 1] as Uint8Array
      spans[2 * i] = at
      if (literal.length === 0) {
        spans[2 * i + 1] = end
        return true
      }
      const head = literal[0] as number
      let stop = at
      for (; ; stop++) {
        if (stop >= end) return false
        const byte = bytes[stop] as number
        // Apache writes \" inside of quotes; nginx writes \x22.
        if (byte === BACKSLASH && head === QUOTE) stop++
        else if (byte === head && isAt(literal, bytes, stop, end)) break
      }
      spans[2 * i + 1] = stop
      at = stop + literal.length
    }
    return true
  }
}

function isAt(literal: Uint8Array, bytes: Uint8Array, at: number, end: number): boolean {
  if (at + literal.length > end) return false
  for (let i = 0; i < literal.length; i++) if (bytes[at + i] !== literal[i]) return false
  return true
}

function fromApache(text: string): string {
  return text.replace(DIRECTIVE, (whole, name: string | undefined, kind: string | undefined, letter: string | undefined) => {
    if (letter === '%') return '%'
    if (name !== undefined && kind === 'i') return `\${http_${name.toLowerCase().replaceAll('-', '_')}}`
    if (name !== undefined && kind === 'o') return `\${sent_http_${name.toLowerCase().replaceAll('-', '_')}}`
    if (name !== undefined && kind === 't') throw new UsageError(`--format: ${whole}: times of another form than %t are not read`)
    const variable = letter === undefined ? undefined : APACHE[letter]
    if (variable === undefined) throw new UsageError(`--format: ${whole} is not known; write it as nginx does, such as $remote_addr`)
    return variable
  })
}
