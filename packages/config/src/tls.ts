import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { createSecureContext } from 'node:tls'

/** Certificates of the service, as PEM. */
export interface TlsConfig {
  /** The certificate, and the chain up to its authority. */
  readonly cert: string
  readonly key: string
  /** Authorities of clients. Clients then need a certificate of one of them (mTLS). */
  readonly clientCa: string | undefined
}

/** Files of {@link TlsConfig}. */
export interface TlsFiles {
  readonly cert: string | undefined
  readonly key: string | undefined
  readonly clientCa: string | undefined
}

/** Records why an option cannot be used. */
export type TlsFault = (option: keyof TlsFiles, reason: string) => void

/** Reads the files, relative to `folder`. Undefined without any, and after a fault. */
export function readTls(files: TlsFiles, folder: string, fault: TlsFault): TlsConfig | undefined {
  const { cert, key, clientCa } = files
  if (cert === undefined && key === undefined && clientCa === undefined) return undefined
  let isGood = true
  const refuse: TlsFault = (option, reason) => {
    isGood = false
    fault(option, reason)
  }
  if (cert === undefined) refuse('cert', 'is missing: give the file of the certificate, in PEM')
  if (key === undefined) refuse('key', 'is missing: give the file of the private key, in PEM')
  const read = (option: keyof TlsFiles): string | undefined => {
    const file = files[option]
    if (file === undefined) return undefined
    try {
      return readFileSync(resolve(folder, file), 'utf8')
    } catch (error) {
      refuse(option, `cannot be read: ${(error as Error).message}`)
      return undefined
    }
  }
  const tls = { cert: read('cert') ?? '', key: read('key') ?? '', clientCa: read('clientCa') }
  if (!isGood) return undefined
  try {
    createSecureContext({ cert: tls.cert, key: tls.key, ca: tls.clientCa })
    return tls
  } catch (error) {
    // The system's message names neither file.
    refuse('cert', `is no certificate for this key, or one of the files is not PEM: ${(error as Error).message}`)
    return undefined
  }
}
