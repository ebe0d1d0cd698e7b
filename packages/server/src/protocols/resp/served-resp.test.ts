import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { createClient } from '@redis/client'
import { longTest, until } from 'sluicegate-testkit'
import { makeCertificates } from 'sluicegate-testkit/service/certificates.js'
import { readExposition, seriesValue } from 'sluicegate-testkit/service/exposition.js'
import { received, runningResp } from 'sluicegate-testkit/service/running-resp.js'
import { configFile, sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'

const YAML = `
policies:
  api: { algorithm: token-bucket, limit: 10, window: 1m }
  jobs: { algorithm: concurrency, limit: 1, ttl: 1h }
throttle: { max-keys: 1000 }
tokens:
  - { name: gateway, scope: decide, secret: 0123456789abcdef-gateway }
`

test('the command line serves RESP beside HTTP, with one state and the same tokens, and counts', async (t) => {
  const child = sluicegate(
    t,
    'serve',
    '--config',
    configFile(t, YAML),
    '--http',
    '127.0.0.1:0',
    '--resp',
    '127.0.0.1:0',
    '--drain',
    '0',
    '--json',
  )
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const { listeners } = JSON.parse(String(line)) as { listeners: { http: string; resp: string } }
  assert.match(listeners.resp, /^redis:\/\/127\.0\.0\.1:\d+$/)
  const client = createClient({ url: listeners.resp, password: '0123456789abcdef-gateway' })
  client.on('error', () => undefined)
  t.after(() => client.destroy())
  await client.connect()
  await client.sendCommand(['SG.TAKE', 'api', 'Zoë', '4'])
  assert.deepEqual(await client.sendCommand(['CL.THROTTLE', 'k', '0', '1', '60']), [0, 1, 0, -1, 60])
  await assert.rejects(client.sendCommand(['SG.TAKE', 'jobs', 'Zoë']), /^Error: NOPERMITS policy "jobs" gives permits/)
  await client.sendCommand(['CL.THROTTLE', 'k', '0', '1', '60'])
  const headers = { authorization: 'Bearer 0123456789abcdef-gateway' }
  const peeked = await fetch(`${listeners.http}/v1/peek?policy=api&key=Zo%C3%AB`, { headers })
  assert.equal(((await peeked.json()) as { remaining: number }).remaining, 6)
  const series = readExposition(await (await fetch(`${listeners.http}/metrics`, { headers })).text())
  assert.equal(seriesValue(series, 'sluicegate_throttle_decisions_total', { outcome: 'allowed' }), 1)
  assert.equal(seriesValue(series, 'sluicegate_throttle_decisions_total', { outcome: 'denied' }), 1)
  assert.equal(seriesValue(series, 'sluicegate_throttle_keys', {}), 1)
  assert.equal(seriesValue(series, 'sluicegate_connections_cut_total', { reason: 'slow' }), 0)
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'close'), [0, null])
})

test('RESP over TLS, and handshakes that are not completed take no place', async (t) => {
  const { server: files, ca } = makeCertificates(t)
  const tls = { cert: readFileSync(files.cert, 'utf8'), key: readFileSync(files.key, 'utf8'), clientCa: undefined }
  const { port, server, open } = await runningResp(t, { tls, bounds: { maxConnections: 8, maxConnectionsPerAddress: 8 } })
  const silent = Array.from({ length: 20 }, () => open())
  await Promise.all(silent.map((socket) => once(socket, 'connect')))
  await until('handshakes beyond two are closed', () => silent.filter(({ closed }) => closed).length === 18)
  const client = connectTls({ port, host: '127.0.0.1', ca })
  t.after(() => client.destroy())
  client.write('CL.THROTTLE k 0 1 60\r\n')
  assert.equal(await received(client, (text) => text.endsWith(':60\r\n')), '*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n')
  assert.equal(server.connections.open, 1)
})

longTest('clients of RESP over TLS that leave their handshake, or do not end it in time, are closed', async (t) => {
  const { server: files, ca } = makeCertificates(t)
  const tls = { cert: readFileSync(files.cert, 'utf8'), key: readFileSync(files.key, 'utf8'), clientCa: undefined }
  const { port, open } = await runningResp(t, { tls, bounds: { headersMs: 500 } })
  const clients = ['', '16030102000100', 'ffff'].flatMap((hex) => {
    const [left, silent] = [open(), open()]
    for (const socket of [left, silent]) {
      socket.write(Buffer.from(hex, 'hex'))
      // Closed by its own side, a socket of Node.js would end when the service ends its side alone.
      socket.resume()
    }
    left.end()
    return [left, silent]
  })
  await Promise.all(clients.map((socket) => socket.closed || once(socket, 'close')))
  const client = connectTls({ port, host: '127.0.0.1', ca })
  t.after(() => client.destroy())
  client.end('CL.THROTTLE k 0 1 60\r\n')
  // A client that has closed its side still gets the reply.
  assert.equal(await received(client, (text) => text.endsWith(':60\r\n')), '*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n')
})
