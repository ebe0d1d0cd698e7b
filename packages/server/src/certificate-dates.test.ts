import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import type { Config } from 'sluicegate-config/config.js'
import { parseConfig } from 'sluicegate-config/read-config.js'
import type { TlsConfig } from 'sluicegate-config/tls.js'
import { makeCertificates, withDates } from 'sluicegate-testkit/service/certificates.js'
import { configFile, ended, sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'
import { certificateDates } from './certificate-dates.js'
import type { Log } from './log.js'
import { startService } from './service.js'

const POLICIES = 'policies:\n  burst: { algorithm: token-bucket, limit: 100, window: 1m }\n'
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const END_MS = Date.UTC(2040, 5, 30)

/** A configuration whose certificate is valid from `fromMs` to `toMs`. */
function yamlOf(t: TestContext, fromMs: number, toMs: number, more = ''): string {
  const { folder, server, ca } = makeCertificates(t)
  writeFileSync(server.cert, withDates(readFileSync(server.cert, 'utf8'), fromMs, toMs))
  // One that has ended beside one that has not.
  writeFileSync(`${folder}/cas.pem`, withDates(ca, 0, DAY_MS) + withDates(ca, 0, END_MS))
  return `listen: { port: 0 }\ntls: { cert: "${server.cert}", key: "${server.key}"${more && `, client-ca: "${folder}/cas.pem"`} }\n${POLICIES}`
}

function tlsOf(yaml: string): TlsConfig {
  return parseConfig(yaml).tls as TlsConfig
}

/** Each warning, without the rest. */
function logOf(lines: string[]): Log {
  const warn = (_: unknown, text: string): number => lines.push(text)
  return { debug() {}, info() {}, warn, error() {} } as unknown as Log
}

function hoursPass(t: TestContext, hours: number): void {
  for (let hour = 0; hour < hours; hour++) t.mock.timers.tick(HOUR_MS)
}

test('a certificate that ends is said to, from 14 days before, once a day, when it has ended, and after a reload', (t) => {
  const tls = tlsOf(yamlOf(t, 0, END_MS, 'client-ca'))
  const lines: string[] = []
  t.mock.timers.enable({ apis: ['setInterval', 'Date'], now: END_MS - 15 * DAY_MS })
  const dates = certificateDates(logOf(lines), tls)
  dates.ready?.()
  assert.deepEqual(lines, [])
  hoursPass(t, 24)
  const soon = 'ends on 2040-06-30T00:00:00Z: put a new one into its file, which is read without a restart'
  assert.deepEqual(lines.splice(0), [`the certificate ${soon}`, `the authority of clients ${soon}`])
  hoursPass(t, 23)
  assert.deepEqual(lines, [])
  hoursPass(t, 1)
  assert.equal(lines.splice(0).length, 2)
  hoursPass(t, 12 * 24)
  assert.equal(lines.splice(0).length, 2 * 12)
  hoursPass(t, 24)
  assert.match(
    lines.splice(0).join(' '),
    /^the certificate has expired on 2040-06-30T00:00:00Z: .* the authority of clients has expired on/,
  )
  const renewed = { ...tls, validities: tls.validities.map((each) => ({ ...each, toMs: END_MS + 300 * DAY_MS })) }
  dates.reload?.({ tls: renewed } as unknown as Config).commit()
  hoursPass(t, 24)
  assert.deepEqual([lines, dates.validities], [[], renewed.validities])
  dates.reload?.({ tls } as unknown as Config).commit()
  assert.equal(lines.length, 2)
  void dates.stop?.({ drainMs: 0, finishMs: 0 })
})

test('check warns of a certificate that has expired, and of one that is not valid yet; both are served', async (t) => {
  const expired = configFile(t, yamlOf(t, 0, DAY_MS))
  const { code, out, err } = await ended(sluicegate(t, 'check', expired))
  assert.deepEqual([code, out], [0, `${expired}: good, 1 policy\n`])
  assert.match(err, /^\S+server\.pem: warning: the certificate has expired on 1970-01-02T00:00:00Z: clients that check it refuse/)
  const early = yamlOf(t, END_MS, END_MS + DAY_MS)
  const { warnings } = JSON.parse((await ended(sluicegate(t, 'check', configFile(t, early), '--json'))).out)
  assert.match(
    warnings[0].reason,
    /^the certificate is not valid before 2040-06-30T00:00:00Z: .*does the clock of this machine go right\?$/,
  )
  const lines: string[] = []
  const service = await startService(parseConfig(early), { log: logOf(lines) })
  t.after(() => service.stop())
  assert.deepEqual(lines, [warnings[0].reason])
  const text = String(await service.metrics.render())
  assert.ok(text.includes(`sluicegate_certificate_end_timestamp_seconds{certificate="cert"} ${(END_MS + DAY_MS) / 1000}\n`), text)
})
