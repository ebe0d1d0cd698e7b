import assert from 'node:assert/strict'
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { type Known, readConfig } from 'sluicegate-config/read-config.js'
import { longTest, until } from 'sluicegate-testkit'
import { makeCertificates } from 'sluicegate-testkit/service/certificates.js'
import { runService } from 'sluicegate-testkit/service/running-service.js'
import { configFile, serveProcess, sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'
import { createLog } from './log.js'
import { startService } from './service.js'

const POLICIES = 'policies:\n  burst: { algorithm: token-bucket, limit: 100, window: 1m }\n'
const TAKE = '/v1/take?policy=burst&key=alice'

function folderFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

function overSocket(path: string, target: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ socketPath: path, path: target, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    sent.once('error', reject).end()
  })
}

function overTls(url: string, options: RequestOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const agent = new Agent({ keepAlive: false })
    const sent = httpsRequest(new URL(TAKE, url), { agent, ...options }, (response) => {
      response.resume()
      response.once('end', () => resolve(response.statusCode ?? 0))
    })
    sent.once('error', reject).end()
  })
}

test('HTTP is answered over a Unix socket, which only the user and the group may use, and which is gone after the stop', async (t) => {
  const path = join(folderFor(t), 'service.sock')
  const service = await runService(t, `listen: { http: "unix:${path}" }\n${POLICIES}`)
  assert.equal(service.url, `unix:${path}`)
  assert.equal(statSync(path).mode & 0o777, 0o660)
  assert.equal(await overSocket(path, TAKE), 200)
  await service.stop()
  assert.equal(existsSync(path), false)
})

test('connections over a Unix socket have no address whose share they could use up', async (t) => {
  const path = join(folderFor(t), 'service.sock')
  const clients = { maxConnections: 20, maxConnectionsPerAddress: 2 }
  await runService(t, `listen: { http: "unix:${path}" }\n${POLICIES}`, { clients })
  const sockets = Array.from({ length: 10 }, () => connect(path))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  for (const socket of sockets) {
    socket.write(`GET /livez HTTP/1.1\r\nHost: x\r\n\r\n`)
    assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1\.1 200 /)
  }
})

test('the socket of a process that was killed is replaced; that of a living one, and any other file, is not', async (t) => {
  const folder = folderFor(t)
  const path = join(folder, 'service.sock')
  const yaml = `listen: { http: "unix:${path}" }\n${POLICIES}`
  const killed = await serveProcess(t, yaml)
  await killed.end('SIGKILL')
  assert.ok(existsSync(path))
  const service = await runService(t, yaml)
  assert.equal(await overSocket(path, TAKE), 200)
  await assert.rejects(runService(t, yaml), { code: 'EADDRINUSE' })
  assert.equal(await overSocket(path, TAKE), 200, 'the first one still answers')
  await service.stop()
  writeFileSync(path, 'precious')
  await assert.rejects(runService(t, yaml), { code: 'EADDRINUSE' })
  assert.equal(readFileSync(path, 'utf8'), 'precious')
})

test('where one of several listeners cannot listen, none does', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.after(() => taken.close())
  const path = join(folderFor(t), 'service.sock')
  const { port } = taken.address() as { port: number }
  const yaml = `listen: { http: "unix:${path}", admin: "127.0.0.1:${port}" }\n${POLICIES}`
  await assert.rejects(runService(t, yaml), { code: 'EADDRINUSE', listener: 'admin' })
  assert.equal(existsSync(path), false)
})

longTest('a listener that cannot be opened is one line that names its option', async (t) => {
  const folder = folderFor(t)
  for (const [option, address, message] of [
    ['--http', `unix:${folder}/nowhere/x.sock`, /--http/],
    ['--admin', '192.0.2.1:1', /192\.0\.2\.1 is no address of this machine: choose another with --admin/],
  ] as const) {
    const child = sluicegate(t, 'serve', '--config', configFile(t, `listen: { port: 0 }\n${POLICIES}`), option, address)
    let err = ''
    child.stderr.on('data', (chunk) => (err += chunk))
    assert.deepEqual((await once(child, 'close'))[0], 1)
    assert.match(err, message)
    assert.equal(err.split('\n').length, 2)
  }
})

test('with a certificate HTTP is encrypted, and its bounds hold', async (t) => {
  const { ca, server } = makeCertificates(t)
  const yaml = `listen: { port: 0 }\ntls: { cert: "${server.cert}", key: "${server.key}" }\n${POLICIES}`
  const service = await runService(t, yaml, { clients: { headersMs: 300, maxConnections: 40, maxConnectionsPerAddress: 40 } })
  assert.match(service.url, /^https:\/\/127\.0\.0\.1:\d+$/)
  assert.equal(await overTls(service.url, { ca }), 200)
  await assert.rejects(overTls(service.url, {}), 'an unknown authority')
  await assert.rejects(overTls(service.url, { ca, maxVersion: 'TLSv1.1' }))
  // Connections that never shake hands take no place from others.
  const silent = Array.from({ length: 50 }, () => connect(Number(new URL(service.url).port), '127.0.0.1'))
  for (const socket of silent) socket.on('error', () => {}).resume()
  const closed = Promise.all(silent.map((socket) => once(socket, 'close')))
  await Promise.all(silent.map((socket) => once(socket, 'connect')))
  for (let i = 0; i < 4; i++) assert.equal(await overTls(service.url, { ca }), 200)
  await closed
})

test('with an authority for clients only those with its certificate are answered', async (t) => {
  const { folder, ca, client } = makeCertificates(t)
  const yaml = `listen: { port: 0 }\ntls: { cert: server.pem, key: server.key, client-ca: ca.pem }\n${POLICIES}`
  const file = join(folder, 'service.yaml')
  writeFileSync(file, yaml)
  const service = await startService(readConfig(file))
  t.after(() => service.stop({ drainMs: 0, finishMs: 0 }))
  const files = { cert: readFileSync(client.cert), key: readFileSync(client.key) }
  assert.equal(await overTls(service.url, { ca, ...files }), 200)
  await assert.rejects(overTls(service.url, { ca }))
  const stranger = makeCertificates(t)
  await assert.rejects(overTls(service.url, { ca, cert: readFileSync(stranger.client.cert), key: readFileSync(stranger.client.key) }))
})

test('a certificate that cannot be used is a fault of the file', async (t) => {
  const { folder } = makeCertificates(t)
  const faultOf = (tls: string): string => {
    const file = join(folder, 'service.yaml')
    writeFileSync(file, `tls: ${tls}\n${POLICIES}`)
    try {
      readConfig(file)
    } catch (error) {
      return (error as Error).message
    }
    return assert.fail('the file was accepted')
  }
  assert.match(faultOf('{ cert: server.pem }'), /service\.yaml:1:\d+: tls\.key: is missing/)
  assert.match(faultOf('{ cert: server.pem, key: nowhere.key }'), /tls\.key: cannot be read: ENOENT/)
  assert.match(faultOf('{ cert: server.pem, key: client.key }'), /tls\.cert: is no certificate for this key/)
  assert.match(faultOf('{ cert: service.yaml, key: server.key }'), /tls\.cert: has no certificate/)
  // Without an authority Node takes one of the public ones, or anybody.
  const whole = readFileSync(join(folder, 'ca.pem'), 'utf8')
  for (const [name, text, reason] of [
    ['empty.pem', '', 'is an empty file'],
    ['blank.pem', ' \n', 'is an empty file'],
    ['key.pem', readFileSync(join(folder, 'ca.key')), 'has no certificate in PEM'],
    ['torn.pem', readFileSync(join(folder, 'ca.pem')).subarray(0, 200), 'has a torn certificate'],
    ['second-torn.pem', whole + whole.slice(0, 200), 'has a torn certificate, or one that begins within a line (1 of 2)'],
    ['marked.pem', `\uFEFF${whole}${whole}`, 'has a torn certificate, or one that begins within a line (1 of 2)'],
    ['indented.pem', ` ${whole}`, 'has a torn certificate'],
    ['bad.pem', readFileSync(join(folder, 'ca.pem'), 'utf8').replace(/\n[^-]{20}/, '\n'), 'has a certificate that cannot be read'],
  ] as const) {
    writeFileSync(join(folder, name), text)
    assert.ok(faultOf(`{ cert: server.pem, key: server.key, client-ca: ${name} }`).includes(`tls.client-ca: ${reason}`), name)
    assert.ok(faultOf(`{ cert: ${name}, key: server.key }`).includes(`tls.cert: ${reason}`), name)
  }
  assert.match(faultOf('{ cert: server.pem, key: empty.pem }'), /tls\.key: is an empty file/)
  writeFileSync(join(folder, 'marked.key'), `\uFEFF${readFileSync(join(folder, 'server.key'), 'utf8')}`)
  assert.match(faultOf('{ cert: server.pem, key: marked.key }'), /tls\.key: has a private key that begins within a line/)
  // An intermediate authority without its root: every handshake would fail.
  assert.match(faultOf('{ cert: server.pem, key: server.key, client-ca: client.pem }'), /tls\.client-ca: has no root, .* add that of CN=/)
  // OpenSSL loads a key of another kind beside the certificate, and no handshake succeeds.
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const { privateKey: rsa } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const secret = { cipher: 'aes-256-cbc', passphrase: 'x' }
  const own = createPrivateKey(readFileSync(join(folder, 'server.key')))
  const other = own.asymmetricKeyType === 'ec' ? rsa : privateKey
  writeFileSync(join(folder, 'other.key'), other.export({ format: 'pem', type: 'pkcs8' }))
  writeFileSync(join(folder, 'secret.key'), own.export({ format: 'pem', type: 'pkcs8', ...secret }))
  writeFileSync(join(folder, 'turned.pem'), whole + readFileSync(join(folder, 'server.pem'), 'utf8'))
  assert.match(faultOf('{ cert: server.pem, key: other.key }'), /tls\.cert: is no certificate for this key/)
  assert.match(faultOf('{ cert: server.pem, key: secret.key }'), /tls\.key: is encrypted: give a key without a passphrase/)
  assert.match(faultOf('{ cert: turned.pem, key: server.key }'), /tls\.cert: begins with a certificate of another key: .*the second here/)
})

test('certificates and tokens are read again; a pair that does not match yet leaves the old one, and the rest is in force', async (t) => {
  const { folder, ca, server } = makeCertificates(t)
  const others = makeCertificates(t)
  const file = join(folder, 'service.yaml')
  const write = (secret: string, limit: number): void =>
    writeFileSync(
      file,
      `listen: { port: 0, resp: "127.0.0.1:0", grpc: "127.0.0.1:0", admin: "unix:${join(folder, 'admin.sock')}" }
tls: { cert: server.pem, key: server.key }
tokens: [{ name: app, scope: decide, secret: ${secret} }]
policies: { burst: { algorithm: token-bucket, limit: ${limit}, window: 1m } }
`,
    )
  write('0123456789abcdef', 100)
  const source = { path: file, read: (_: unknown, known?: Known) => readConfig(file, known) }
  const service = await startService(source.read(undefined), { source, log: createLog('silent'), watchMs: 5 })
  t.after(() => service.stop({ drainMs: 0, finishMs: 0 }))
  const authorities = { ours: ca, theirs: others.ca }
  const isOf = async (url: string, whose: keyof typeof authorities): Promise<boolean> => {
    const socket = connectTls({
      port: Number(new URL(url).port),
      host: '127.0.0.1',
      ca: authorities[whose],
      ALPNProtocols: ['h2', 'http/1.1'],
    })
    const isTrusted = await new Promise<boolean>((resolve) => {
      socket.once('secureConnect', () => resolve(true)).on('error', () => resolve(false))
    })
    socket.destroy()
    return isTrusted
  }
  const urls = [...service.urls].filter(([name]) => name !== 'admin').map(([, url]) => url)
  const asked = (secret: string): Promise<number> =>
    overTls(service.url, { ca: authorities.ours, headers: { authorization: `Bearer ${secret}` } })
  assert.deepEqual([await asked('0123456789abcdef'), await asked('fedcba9876543210')], [200, 401])
  // Half of a renewal.
  copyFileSync(others.server.cert, server.cert)
  write('fedcba9876543210', 50)
  await until('the rest is in force', async () => (await asked('fedcba9876543210')) === 200)
  assert.deepEqual([await asked('0123456789abcdef'), service.engine.policy('burst')?.policy.limit], [401, 50])
  assert.match(service.reloader?.state.fault ?? '', /server\.pem: is no certificate for this key/)
  for (const url of urls) assert.ok(await isOf(url, 'ours'), url)
  copyFileSync(others.server.key, server.key)
  await until('the pair is in force', () => service.reloader?.state.fault === undefined)
  for (const url of urls) assert.ok((await isOf(url, 'theirs')) && !(await isOf(url, 'ours')), url)
})

test('a stop does not wait for handshakes', async (t) => {
  const { server } = makeCertificates(t)
  const service = await runService(t, `listen: { port: 0 }\ntls: { cert: "${server.cert}", key: "${server.key}" }\n${POLICIES}`)
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  const startMs = performance.now()
  await service.stop({ drainMs: 0, finishMs: 100 })
  assert.ok(performance.now() - startMs < 5_000)
})
