/** Names of W3C's extended log format in those of nginx; others are named as they are, with `_` in place of what is no letter. */
const NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'c-ip': 'remote_addr',
    'cs-method': 'request_method',
    'cs-uri': 'request_uri',
    'cs-uri-stem': 'uri',
    'cs-uri-query': 'query',
    'cs-username': 'remote_user',
    'cs-host': 'http_host',
    'sc-status': 'status',
    'sc-bytes': 'bytes_sent',
    'x-forwarded-for': 'http_x_forwarded_for',
  }),
)
const HEADER = /^([cs])[sc]?\((.+)\)$/
const HASH = 0x23
const TAB = 0x09
const DIRECTIVE = /^#(?:Version|Fields|Software|Start-Date|End-Date|Date|Remark):/

/**
 * The lines of a log that say what the others are: `#Fields: date time c-ip cs-uri-stem`, as IIS and CloudFront write them. They may come again with
 * other columns. Source: W3C, Extended Log File Format, WD-logfile-960323.
 */
export class FieldLines {
  #columns: readonly string[] | undefined

  /**
   * Whether the line is no request, but says something of the log: a format is to be looked for again then.
   *
   * @param isFree whether no other format is known: in the log of one such a line is none of its server.
   */
  read(bytes: Buffer, start: number, end: number, isFree: boolean): boolean {
    if (bytes[start] !== HASH || !(isFree || this.#columns !== undefined)) return false
    const line = bytes.toString('latin1', start, end)
    if (!DIRECTIVE.test(line)) return false
    if (line.startsWith('#Fields:')) this.#columns = line.slice('#Fields:'.length).trim().split(/\s+/).filter(Boolean).map(nameOf)
    return true
  }

  /** The format of a line, as `log_format` of nginx; undefined where no line above has said it. IIS writes a space between values, CloudFront a tab. */
  formatOf(bytes: Buffer, start: number, end: number): string | undefined {
    if (this.#columns === undefined || this.#columns.length === 0) return undefined
    return this.#columns.map((name) => `$${name}`).join(bytes.subarray(start, end).includes(TAB) ? '\t' : ' ')
  }
}

function nameOf(field: string): string {
  const lowerCase = field.toLowerCase()
  const [, side, header] = HEADER.exec(lowerCase) ?? []
  const name = NAMES.get(lowerCase) ?? (header === undefined ? lowerCase : `${side === 'c' ? 'http' : 'sent_http'}_${header}`)
  return name.replace(/\W/g, '_')
}
