import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { until } from 'sluicegate-testkit'
import { makeCertificates } from '../certificates.js'
import { type Cleanup, configFile, type ServiceProcess, served, sluicegateOn } from '../sluicegate-process.js'

const YAML = `listen: { port: 0, grpc: 127.0.0.1:0, resp: 127.0.0.1:0, admin: 127.0.0.1:0 }
policies:
  api: { algorithm: token-bucket, limit: 10, window: 1m }
  slots: { algorithm: concurrency, limit: 3, ttl: 5s }
  both: { all-of: [{ name: x, algorithm: gcra, limit: 5, window: 1s }, { name: y, algorithm: fixed-window, limit: 30, window: 1h }] }
  bystanders: { algorithm: token-bucket, limit: 3, window: 30d }
`
/** A service without a storm has about 65 MB. */
const MAX_RSS_BYTES = 300 * 1_048_576

/** A service with all its listeners, in its own process. */
export interface StormedService {
  readonly service: ServiceProcess
  readonly urls: Readonly<Record<'http' | 'grpc' | 'resp' | 'admin', URL>>
  /** The authority of its certificate; undefined where its connections are not encrypted. */
  readonly ca: string | undefined
  /** What it has written to its log so far. */
  log(): string
  /** Fails unless it is as it was before: no connection, call or file is left open, and no fault was caught. */
  isAsBefore(): Promise<void>
}

/** The flag of a service whose connections are encrypted, with a certificate of its own. */
export const ENCRYPTED = 'encrypted'

/** @param node the program, or the program and its options. @param flags options of the service, and {@link ENCRYPTED}. */
export async function stormedService(t: Cleanup, node: string | readonly string[], ...flags: string[]): Promise<StormedService> {
  const { ca, server } = flags.includes(ENCRYPTED) ? makeCertificates(t) : {}
  const yaml = server === undefined ? YAML : `${YAML}tls: { cert: ${server.cert}, key: ${server.key} }\n`
  const child = sluicegateOn(node, t, 'serve', '--config', configFile(t, yaml), ...flags.filter((flag) => flag !== ENCRYPTED))
  let log = ''
  child.stderr.on('data', (text) => {
    log += text
  })
  const service = await served(child, ca)
  const url = (name: string): URL => service.urls.get(name) ?? assert.fail(`${name} does not listen`)
  const files = (): number => readdirSync(`/proc/${child.pid}/fd`).length
  await service.metric('sluicegate_connections')
  const filesBefore = files()
  const isQuiet = async (): Promise<boolean> =>
    // The request for the metrics is one itself.
    (await service.metric('sluicegate_connections')) <= 1 && (await service.metric('sluicegate_requests_in_flight')) <= 1
  return {
    service,
    urls: { http: new URL(service.url), grpc: url('grpc'), resp: url('resp'), admin: url('admin') },
    ca,
    log: () => log,
    async isAsBefore() {
      assert.equal(child.exitCode, null, `the service ended: ${log}`)
      await until('no connection or call is left', isQuiet)
      // One for the metrics.
      await until('no file is left open', () => files() <= filesBefore + 1)
      for (const protocol of ['http', 'grpc', 'resp', 'admin'])
        assert.equal(await service.metric('sluicegate_protocol_faults_total', { protocol }), 0, log)
      assert.ok(service.rssBytes() < MAX_RSS_BYTES, `${service.rssBytes()} bytes of memory`)
      assert.doesNotMatch(log, /"level":50/)
    },
  }
}
