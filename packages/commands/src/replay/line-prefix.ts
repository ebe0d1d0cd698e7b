/** What stands before the line of a server: what forwards or stores logs puts it there. */
export type PrefixName = keyof typeof PREFIXES

/** The line behind a prefix. */
export interface LineInside {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
}

/** Longer prefixes are none: RFC 5424 has structured data in them. */
const LONGEST_PREFIX = 2_048

/** Program and process, and a colon: `nginx:`, `haproxy[123]:`. */
const TAG = String.raw`[^\s:[\]]+(?:\[[^\]\s]*\])?: ?`
const PRIORITY = String.raw`(?:<\d{1,3}>)?`
const ISO_TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?`

/** RFC 3164, section 4.1; the time as rsyslog writes it in RFC 3339, too. */
const BSD_SYSLOG = new RegExp(
  `^${PRIORITY}(?:[A-Z][a-z]{2} [ \\d]\\d (?:\\d{4} )?\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,9})?|${ISO_TIME}) (?:[^\\s:]\\S* )?${TAG}`,
)
/** RFC 5424, section 6; a count of bytes in front by RFC 6587. */
const SYSLOG = new RegExp(
  `^(?:\\d{1,6} )?${PRIORITY}1 (?:${ISO_TIME}|-) \\S+ \\S+ \\S+ \\S+ (?:-|(?:\\[(?:[^\\]"]|"(?:[^"\\\\]|\\\\.)*")*\\])+) (?:\\xef\\xbb\\xbf)?`,
)
/** Kubernetes' files of containers. Parts of a line (`P`) are not joined. */
const CRI = new RegExp(`^${ISO_TIME} (?:stdout|stderr) F(?::\\S+)? `)
/** `docker compose logs`, `kubectl logs --prefix`, and the times of `docker logs -t` and `kubectl logs --timestamps`. */
const CONTAINER = new RegExp(`^(?:[\\w.-]+ +\\| (?:${ISO_TIME} )?|\\[pod/[^\\]\\s]+\\] (?:${ISO_TIME} )?|${ISO_TIME} )`)
/** Apache's `%v:%p`. */
const VHOST = /^(?:\[[^\]\s]+\]|[\w.*-]+)(?::\d{1,5})? /

const PREFIXES = {
  syslog: (bytes: Buffer, start: number, end: number) => behind(BSD_SYSLOG, bytes, start, end) ?? behind(SYSLOG, bytes, start, end),
  cri: (bytes: Buffer, start: number, end: number) => behind(CRI, bytes, start, end),
  envelope: insideEnvelope,
  container: (bytes: Buffer, start: number, end: number) => behind(CONTAINER, bytes, start, end),
  vhost: (bytes: Buffer, start: number, end: number) => behind(VHOST, bytes, start, end),
} as const

/** In the order in which they are tried. */
export const PREFIX_NAMES = Object.keys(PREFIXES) as readonly PrefixName[]

/** The line behind the prefix; undefined for a line without it. */
export function behindPrefix(name: PrefixName, bytes: Buffer, start: number, end: number): LineInside | undefined {
  return PREFIXES[name](bytes, start, end)
}

function behind(prefix: RegExp, bytes: Buffer, start: number, end: number): LineInside | undefined {
  const found = prefix.exec(bytes.toString('latin1', start, Math.min(end, start + LONGEST_PREFIX)))
  return found === null ? undefined : { bytes, start: start + found[0].length, end }
}

/** Of Docker's driver `json-file`, of the journal (`journalctl -o json`), and of Logstash, Fluent Bit and others. */
const LINE_MEMBERS = ['log', 'MESSAGE', 'message', 'msg']

/** A line as a text within JSON: `{"log":"...\n","stream":"stdout","time":"..."}`. */
function insideEnvelope(bytes: Buffer, start: number, end: number): LineInside | undefined {
  if (bytes[start] !== 0x7b) return undefined
  let envelope: Readonly<Record<string, unknown>>
  try {
    envelope = JSON.parse(bytes.toString('utf8', start, end))
  } catch {
    return undefined
  }
  const line = LINE_MEMBERS.map((name) => envelope[name]).find((value) => typeof value === 'string')
  if (typeof line !== 'string') return undefined
  const inside = Buffer.from(line.replace(/\r?\n$/, ''))
  return { bytes: inside, start: 0, end: inside.length }
}
