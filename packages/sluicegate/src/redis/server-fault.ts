import { KeyFault } from '../shared/call-guard.js'

/** What servers say of themselves: not now, not here, not to you. Clients of glide have other words for some. */
const OUT: ReadonlySet<string> = new Set([
  'ASK',
  'AUTHENTICATIONFAILED',
  'BUSY',
  'BUSYLOADING',
  'CLUSTERDOWN',
  'DENIED',
  'LOADING',
  'MASTERDOWN',
  'MISCONF',
  'MOVED',
  'NOAUTH',
  'NOPERM',
  'NOREPLICAS',
  'OOM',
  'READONLY',
  'UNKILLABLE',
  'WRONGPASS',
])

/** The same, of those that have no code of their own. */
const OUT_IN_WORDS = /unknown command|can't run this command|no permissions to run|max number of clients|cluster support disabled/i
/** The permission that is missing is one for a key. */
const OF_A_KEY = /no permissions to access/i
/** A reply that is an error begins with its code; what clients say by themselves does not. */
const CODE = /^(?:([A-Z][A-Z0-9]{2,}):? |An error was signalled by the server: - ([A-Za-z]+): )/
/** Redis before 7 tells an error within a script by its code further on. */
const CODE_WITHIN = /: -([A-Z]{3,}) /

/**
 * What an error of a client is to be taken for: a {@link KeyFault} when a server answered, and what it said does not mean that it cannot
 * serve; otherwise the error itself.
 */
export function faultOf(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { message } = error
  const [, code, word] = CODE.exec(message) ?? []
  const said = code ?? word
  if (said === undefined) return error
  const [, within] = CODE_WITHIN.exec(message) ?? []
  const isOut = isOfServer(said) || (within !== undefined && isOfServer(within)) || OUT_IN_WORDS.test(message)
  return isOut && !OF_A_KEY.test(message) ? error : new KeyFault(message, { cause: error })
}

function isOfServer(code: string): boolean {
  return OUT.has(code.toUpperCase().replace(/ERROR$/, ''))
}
