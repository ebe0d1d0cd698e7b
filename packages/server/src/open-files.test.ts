import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { test } from 'node:test'
import { until } from 'sluicegate-testkit'
import { announcement, configFile, ended, sluicegateOn } from 'sluicegate-testkit/service/sluicegate-process.js'
import { listenFault } from './cli/serve.js'
import { isOutOfFiles, OUT_OF_FILES } from './open-files.js'

const YAML = 'listen: { port: 0 }\npolicies:\n  a: { algorithm: gcra, limit: 10, window: 1m }\n'

/** Node.js in a shell that lets it open so many files. */
const withFiles = (most: number): readonly string[] => ['bash', '-c', `ulimit -n ${most} && exec "$0" "$@"`, process.execPath]

test('a service that may open too few files says so at its start', async (t) => {
  // Fewer than the runtime itself needs are none of ours: from there on, the first number with which it is too few.
  for (let most = 20; ; most++) {
    assert.ok(most < 100, 'it never was too few')
    const child = sluicegateOn(withFiles(most), t, 'serve', '--config', configFile(t, YAML))
    announcement(child).then(
      () => child.kill('SIGKILL'),
      () => undefined,
    )
    const { code, err } = await ended(child)
    assert.notEqual(code, null, `${most} are enough, and none before was said to be too few`)
    if (!err.startsWith('sluicegate: ')) continue
    assert.equal(code, 1)
    assert.match(
      err,
      /^sluicegate: (\S+ cannot be opened: )?too many files are open: raise the limit \(ulimit -n, or LimitNOFILE= of systemd\)\n$/,
    )
    return
  }
})

test('a service says at its start that connections may use up its files, and once that they have', async (t) => {
  const child = sluicegateOn(withFiles(160), t, 'serve', '--config', configFile(t, YAML))
  let log = ''
  child.stderr.on('data', (chunk) => {
    log += chunk
  })
  const { port, hostname } = new URL((await announcement(child)).url)
  await until('the start says it', () => log.includes('this process may open fewer files than clients.max-connections needs'))
  assert.ok(!log.includes(OUT_OF_FILES))
  const sockets = new Set<Socket>()
  const close = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  t.after(close)
  // What is closed, or was not taken, is opened again: on a busy machine the first ones may be over before anybody looks.
  const open = (): void => {
    for (let i = 0; i < 50 && sockets.size < 400; i++) {
      const socket = createConnection({ port: Number(port), host: hostname })
      sockets.add(socket)
      socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
    }
  }
  const said = `connections of clients are closed without an answer: ${OUT_OF_FILES}`
  await until('it is said', () => {
    open()
    return log.includes(said)
  }).catch((error: Error) => assert.fail(`${error.message}, with ${sockets.size} connections and this log: ${log}`))
  close()
  child.kill('SIGTERM')
  await once(child, 'close')
  assert.equal(log.split('without an answer').length, 2)
})

test('the limit of the process and that of the machine are told from other faults', () => {
  const fault = (code: string): Error => Object.assign(new Error(code), { code })
  assert.deepEqual(['EMFILE', 'ENFILE', 'EACCES'].map(fault).map(isOutOfFiles), [true, true, false])
  assert.equal(listenFault(fault('EMFILE'), 'grpc', { host: '127.0.0.1', port: 8_081 }), `127.0.0.1:8081 cannot be opened: ${OUT_OF_FILES}`)
})
