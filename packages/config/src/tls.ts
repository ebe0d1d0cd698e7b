import { createPrivateKey, X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { option, text, type ValuesOf } from './option.js'
import { readBytes } from './read-file.js'

/** Certificates of the service, as PEM. */
export interface Certificates {
  /** The certificate, and the chain up to its authority. */
  readonly cert: string
  readonly key: string
  /** Authorities of clients. Clients then need a certificate of one of them (mTLS). */
  readonly clientCa: string | undefined
}

/** {@link Certificates} with where they come from. */
export interface TlsConfig extends Certificates {
  /** To be watched: these are read again when they change. */
  readonly files: readonly string[]
  /** Of the service's own certificate, and of that authority of clients which is valid for longest. */
  readonly validities: readonly Validity[]
  /** Why the files could not be used when they were read last, and these are the ones before; undefined when they could. */
  readonly fault?: string | undefined
}

/** When a certificate is valid, in Unix milliseconds. */
export interface Validity {
  readonly option: 'cert' | 'client-ca'
  readonly file: string
  readonly fromMs: number
  readonly toMs: number
}

/** The section `tls`, relative to the file that names it. */
export const TLS = {
  cert: option('cert', text('server.pem'), {
    what: 'The certificate of all listeners but Unix sockets, a file in PEM, relative to this file. Default: none, no encryption.',
    example: 'server.pem',
  }),
  key: option('key', text('server.key'), { what: 'Its key, a file in PEM. Default: none.', example: 'server.key' }),
  clientCa: option('client-ca', text('clients.pem'), {
    what: 'The authority, a file in PEM, from which clients need a certificate. Default: none, clients need none.',
    example: 'clients.pem',
  }),
}

/** Files of {@link TlsConfig}. */
export type TlsFiles = ValuesOf<typeof TLS>

/** Records why an option cannot be used. */
export type TlsFault = (option: keyof TlsFiles, reason: string) => void

/** Far above any real file, with all authorities of a machine in it. */
const MAX_BYTES = 4_000_000
const CERTIFICATE = /^-----BEGIN (?:X509 )?CERTIFICATE-----[^-]*\n-----END (?:X509 )?CERTIFICATE-----/gm
const BEGIN = /-----BEGIN (?:X509 )?CERTIFICATE-----/g

/**
 * Reads the files, relative to `folder`. Undefined without any, and after a fault.
 *
 * @param before those in force, for a reload: files that cannot be used now leave them as they are, and say why in `fault`. A key may be written a
 * moment after its certificate.
 */
export function readTls(files: TlsFiles, folder: string, fault: TlsFault, before?: TlsConfig): TlsConfig | undefined {
  const { cert, key, clientCa } = files
  if (cert === undefined && key === undefined && clientCa === undefined) return undefined
  if (cert === undefined) fault('cert', 'is missing: give the file of the certificate, in PEM')
  if (key === undefined) fault('key', 'is missing: give the file of the private key, in PEM')
  if (cert === undefined || key === undefined) return undefined
  const paths = [cert, key, ...(clientCa === undefined ? [] : [clientCa])].map((file) => resolve(folder, file))
  const faults: [option: keyof TlsFiles, reason: string][] = []
  const read = (option: keyof TlsFiles, kind: PemKind): string => {
    const { pem, reason } = readPem(resolve(folder, files[option] ?? ''), kind)
    if (reason !== undefined) faults.push([option, reason])
    return pem
  }
  const tls = {
    cert: read('cert', 'certificates'),
    key: read('key', 'key'),
    clientCa: clientCa === undefined ? undefined : read('clientCa', 'authorities'),
    files: paths,
  }
  if (faults.length === 0) {
    try {
      const reason = pairFault(tls.cert, tls.key)
      if (reason !== undefined) faults.push(['cert', reason])
      else {
        createSecureContext({ cert: tls.cert, key: tls.key, ...(tls.clientCa !== undefined && { ca: tls.clientCa }) })
        return { ...tls, validities: validitiesOf(tls) }
      }
    } catch (error) {
      // The system's message names neither file.
      faults.push(['cert', `is no certificate for this key, or one of the files is not PEM: ${(error as Error).message}`])
    }
  }
  if (before !== undefined && (before.clientCa === undefined) === (clientCa === undefined)) {
    const reasons = faults.map(([option, reason]) => `${files[option]}: ${reason}`)
    return { ...before, files: paths, fault: reasons.join('\n') }
  }
  for (const each of faults) fault(...each)
  return undefined
}

function validitiesOf({ cert, clientCa, files }: Certificates & Pick<TlsConfig, 'files'>): Validity[] {
  const [own] = datesOf(cert)
  // An authority that has ended may stand beside its successor.
  const [last] = datesOf(clientCa ?? '').sort((a, b) => b.toMs - a.toMs)
  return [
    ...(own === undefined ? [] : [{ option: 'cert' as const, file: files[0] as string, ...own }]),
    ...(last === undefined ? [] : [{ option: 'client-ca' as const, file: files[2] as string, ...last }]),
  ]
}

function datesOf(pem: string): Pick<Validity, 'fromMs' | 'toMs'>[] {
  const certificates = Array.from(pem.match(CERTIFICATE) ?? [], (block) => new X509Certificate(block))
  return certificates.map(({ validFrom, validTo }) => ({ fromMs: Date.parse(validFrom), toMs: Date.parse(validTo) }))
}

/** From here on a certificate is said to end. */
const ENDS_SOON_MS = 14 * 86_400_000

/** What an operator has to know of the time in which a certificate is valid; undefined where it is far from its end. */
export function validityNote({ option, fromMs, toMs }: Validity, nowMs: number): string | undefined {
  const what = option === 'cert' ? 'the certificate' : 'the authority of clients'
  const effect = option === 'cert' ? 'clients that check it refuse the connection' : 'no client is accepted that has a certificate of it'
  const renew = 'put a new one into its file, which is read without a restart'
  if (nowMs < fromMs) return `${what} is not valid before ${dateText(fromMs)}: ${effect}; does the clock of this machine go right?`
  if (nowMs >= toMs) return `${what} has expired on ${dateText(toMs)}: ${effect}; ${renew}`
  return nowMs >= toMs - ENDS_SOON_MS ? `${what} ends on ${dateText(toMs)}: ${renew}` : undefined
}

function dateText(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z')
}

/** Why a key is not that of the first certificate. OpenSSL takes a key of another kind without a word, and then no handshake succeeds. */
function pairFault(cert: string, key: string): string | undefined {
  const own = createPrivateKey(key)
  const nth = (cert.match(CERTIFICATE) ?? []).findIndex((block) => new X509Certificate(block).checkPrivateKey(own))
  if (nth === 0) return undefined
  return nth < 0
    ? 'is no certificate for this key'
    : `begins with a certificate of another key: the service's own, the ${ordinal(nth)} here, comes first, then its chain`
}

function ordinal(index: number): string {
  return ['first', 'second', 'third'][index] ?? `${index + 1}th`
}

/** What a file in PEM has to have. */
export type PemKind = 'certificates' | 'authorities' | 'key'

/** A file in PEM, and the reason why it cannot be used, if there is one. */
export function readPem(file: string, kind: PemKind): { readonly pem: string; readonly reason: string | undefined } {
  try {
    const pem = readBytes(file, MAX_BYTES).toString('latin1')
    if (pem.trim() === '') return { pem, reason: 'is an empty file' }
    if (kind === 'key') return { pem, reason: keyFault(pem) }
    return { pem, reason: certificatesFault(pem) ?? (kind === 'authorities' ? authoritiesFault(pem) : undefined) }
  } catch (error) {
    return { pem: '', reason: `cannot be read: ${(error as Error).message}` }
  }
}

/** Why a text is no key. Of an encrypted one the runtime would ask the terminal for its passphrase. */
function keyFault(pem: string): string | undefined {
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem)) return 'has no private key in PEM'
  if (!/^-----BEGIN [A-Z ]*PRIVATE KEY-----/m.test(pem)) return 'has a private key that begins within a line, as after a byte order mark'
  const isEncrypted = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(pem)
  return isEncrypted ? 'is encrypted: give a key without a passphrase, as "openssl pkey -in KEY -out NEW" writes it' : undefined
}

/** Why a text is no list of certificates. Node takes text without any for one, and would trust nobody, or everybody. */
function certificatesFault(pem: string): string | undefined {
  const blocks = pem.match(CERTIFICATE) ?? []
  const begun = pem.match(BEGIN)?.length ?? 0
  if (begun === 0) return 'has no certificate in PEM'
  // OpenSSL skips a certificate that begins within a line, as after a byte order mark, and ends without a word at one that is torn.
  if (blocks.length < begun) return `has a torn certificate, or one that begins within a line (${begun - blocks.length} of ${begun})`
  try {
    for (const block of blocks) new X509Certificate(block)
    return undefined
  } catch (error) {
    return `has a certificate that cannot be read: ${(error as Error).message}`
  }
}

/** The runtime trusts chains that end at a certificate which has signed itself, and no others. */
function authoritiesFault(pem: string): string | undefined {
  const certificates = Array.from(pem.match(CERTIFICATE) ?? [], (block) => new X509Certificate(block))
  if (certificates.some(({ subject, issuer }) => subject === issuer)) return undefined
  return `has no root, only certificates of another authority, so that no certificate is accepted: add that of ${certificates.at(-1)?.issuer}`
}
