import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Cleanup } from './sluicegate-process.js'

/** A certificate with its key, as files. */
export interface CertificateFiles {
  readonly cert: string
  readonly key: string
}

/** An authority, and certificates of it for 127.0.0.1, in a folder for the length of a test. */
export interface Certificates {
  readonly folder: string
  readonly ca: string
  readonly server: CertificateFiles
  readonly client: CertificateFiles
}

/** Makes certificates with openssl. */
export function makeCertificates(t: Cleanup): Certificates {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-tls-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  openssl('req', '-x509', ...newKey, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=test authority')
  writeFileSync(join(folder, 'san'), 'subjectAltName=IP:127.0.0.1,DNS:localhost\n')
  const issue = (name: string): CertificateFiles => {
    openssl('req', ...newKey.slice(0, -2), '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`)
    openssl(...`x509 -req -in ${name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out ${name}.pem`.split(' '))
    return { cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) }
  }
  return { folder, ca: readFileSync(join(folder, 'ca.pem'), 'utf8'), server: issue('server'), client: issue('client') }
}

/** A certificate in PEM with other dates. Its signature is wrong then, which only who connects looks at. */
export function withDates(pem: string, fromMs: number, toMs: number): string {
  const der = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64').toString('latin1')
  const times = [fromMs, toMs].map((ms) => `${new Date(ms).toISOString().slice(2, 19).replace(/\D/g, '')}Z`)
  const made = Buffer.from(
    der.replace(/\d{12}Z/g, (time) => times.shift() ?? time),
    'latin1',
  )
  return `-----BEGIN CERTIFICATE-----\n${made.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`
}
