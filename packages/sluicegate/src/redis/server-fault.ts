import { KeyFault } from '../shared/call-guard.js'

/** Errors by which a server cannot serve now, here or this client. glide words some differently. */
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

/** The same, without an error code of their own. */
const OUT_IN_WORDS = /unknown command|can't run this command|no permissions to run|max number of clients|cluster support disabled/i
/** The missing permission is one for a key. */
const OF_A_KEY = /no permissions to access/i
/** An error reply begins with its code; errors of clients do not. */
const CODE = /^(?:([A-Z][A-Z0-9]{2,}):? |An error was signalled by the server: - ([A-Za-z]+): )/
/** Redis before 7 puts the code of an error within a script further on. */
const CODE_WITHIN = /: -([A-Z]{3,}) /

/**
 * Classifies an error of a client: a {@link KeyFault} when a server answered with an error that does not mean that it cannot serve; else the
 * error itself.
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
