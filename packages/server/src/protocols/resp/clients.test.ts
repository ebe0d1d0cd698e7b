import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { createClient } from '@redis/client'
import { GlideClient, Logger } from '@valkey/valkey-glide'
import { Redis } from 'ioredis'
import { manualClock, tokenBucket } from 'sluicegate'
import { everyNth } from 'sluicegate-testkit'
import { type RunningResp, runningResp } from 'sluicegate-testkit/service/running-resp.js'
import type { Access } from './access.js'

// What real clients do between connecting and the first reply, without and with a token.

const TOKEN = 'token-of-a-gateway'
const WITH_TOKEN: Access = {
  generation: 1,
  needsToken: () => true,
  has: () => true,
  allows: (secret, scope) => secret === TOKEN && scope === 'decide',
  priorityOf: () => undefined,
}
const PATIENT_MS = 30_000
/** Debian's: another may come first in the path, without its packages. */
const PYTHON = '/usr/bin/python3'

Logger.setLoggerConfig('off')

for (const [i, access] of [undefined, WITH_TOKEN].entries()) {
  const password = access && TOKEN
  const how = access === undefined ? 'without a token' : 'with a token'

  for (const RESP of [2, 3] as const) {
    everyNth(i + RESP, 2)(`node-redis speaks RESP ${RESP} ${how}`, async (t) => {
      const { port } = await running(t, access)
      const client = createClient({ url: `redis://127.0.0.1:${port}`, RESP, ...(password && { password }), name: 'web' })
      t.after(() => client.destroy())
      await client.connect()
      assert.deepEqual(await client.sendCommand(['CL.THROTTLE', 'k', '15', '30', '60']), [0, 16, 15, -1, 2])
      const replies = await Promise.all(Array.from({ length: 100 }, () => client.sendCommand(['SG.TAKE', 'api', 'k'])))
      assert.deepEqual(
        replies.map((reply) => (reply as unknown as number[])[0]),
        Array.from({ length: 100 }, (_, i) => (i < 10 ? 0 : 1)),
      )
    })
  }

  everyNth(i, 2)(`ioredis ${how}`, async (t) => {
    const { port } = await running(t, access)
    const client = new Redis({ host: '127.0.0.1', port, ...(password && { password }), connectionName: 'web' })
    t.after(() => client.disconnect())
    assert.deepEqual(await client.call('CL.THROTTLE', 'k', 15, 30, 60), [0, 16, 15, -1, 2])
    const pipelined = await client
      .pipeline([...Array.from({ length: 20 }, () => ['call', 'SG.TAKE', 'api', 'k']), ['call', 'NO.SUCH']])
      .exec()
    assert.deepEqual(pipelined?.[9], [null, [0, 10, 0, -1, 60_000]])
    assert.deepEqual(pipelined?.[10], [null, [1, 10, 0, 6_000, 60_000]])
    assert.match(String(pipelined?.[20]?.[0]), /ERR unknown command 'NO.SUCH'/)
    assert.equal(((await client.callBuffer('ECHO', Buffer.from([0, 255]))) as Buffer).toString('hex'), '00ff')
  })

  everyNth(i + 1, 2)(`valkey-glide ${how}`, async (t) => {
    const { port } = await running(t, access)
    const client = await GlideClient.createClient({
      addresses: [{ host: '127.0.0.1', port }],
      requestTimeout: PATIENT_MS,
      clientName: 'web',
      ...(password && { credentials: { password } }),
    })
    t.after(() => client.close())
    assert.deepEqual(await client.customCommand(['CL.THROTTLE', 'k', '15', '30', '60']), [0, 16, 15, -1, 2])
    assert.deepEqual(await client.customCommand(['SG.PEEK', 'api', 'k']), [0, 10, 10, -1, 0])
  })

  everyNth(i, 2)(`redis-cli ${how}, one command at a time, from its input and in RESP 3`, async (t) => {
    const { port } = await running(t, access)
    const auth = password === undefined ? [] : ['--no-auth-warning', '-a', password]
    const run = (input: string, ...args: string[]) => output('redis-cli', ['-p', `${port}`, ...auth, ...args], input)
    assert.equal(await run('', 'CL.THROTTLE', 'k', '15', '30', '60'), '0\n16\n15\n-1\n2\n')
    assert.equal(await run('CL.THROTTLE k 15 30 60 15\nSG.TAKE api "a b"\nSELECT 0\n'), '0\n16\n0\n-1\n32\n0\n10\n9\n-1\n6000\nOK\n')
    assert.match(await run('', '-3', 'HELLO'), /server sluicegate\n/)
    assert.match(await run('', 'GET', 'k'), /^ERR unknown command 'GET', with args beginning with: 'k'/)
  })

  everyNth(i + 1, 2)(`redis-benchmark ${how}, with and without pipelining`, async (t) => {
    const { port, engine } = await running(t, access)
    const auth = password === undefined ? [] : ['-a', password]
    for (const pipelined of ['1', '16']) {
      const args = ['-p', `${port}`, ...auth, '-q', '-n', '2000', '-c', '10', '-P', pipelined, 'CL.THROTTLE', 'b', '15', '30', '60']
      assert.match(await output('redis-benchmark', args), /requests per second/)
    }
    const { allowed, denied } = engine.callRates.counts
    assert.deepEqual([allowed, allowed + denied], [16, 4_000])
  })

  everyNth(i, 2)(`redis-py ${how}`, async (t) => {
    const { port } = await running(t, access)
    const program = `
import redis, sys
client = redis.Redis(port=${port}, password=${password === undefined ? 'None' : `'${password}'`}, client_name='web')
print(client.execute_command('CL.THROTTLE', b'\\x00\\xff', 15, 30, 60))
pipe = client.pipeline(transaction=False)
for i in range(12): pipe.execute_command('SG.TAKE', 'api', 'k')
print([reply[0] for reply in pipe.execute()])
print(client.ping(), client.echo('x'), client.client_getname())
try: client.get('k')
except redis.ResponseError as error: print(error)
`
    assert.equal(
      await output(PYTHON, ['-c', program]),
      "[0, 16, 15, -1, 2]\n[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]\nTrue b'x' web\nunknown command 'GET', with args beginning with: 'k' \n",
    )
  })
}

test('a client with a wrong token is refused', async (t) => {
  const { port } = await running(t, WITH_TOKEN)
  const client = createClient({ url: `redis://127.0.0.1:${port}`, password: 'wrong', socket: { reconnectStrategy: false } })
  client.on('error', () => undefined)
  await assert.rejects(client.connect(), /WRONGPASS invalid username-password pair/)
})

function running(t: TestContext, access: Access | undefined): Promise<RunningResp> {
  const policies = [tokenBucket({ limit: 10, window: '1m', name: 'api' })]
  return runningResp(t, { policies, clock: manualClock(1.7e12), ...(access && { access }) })
}

/** What a program prints. */
function output(command: string, args: readonly string[], input = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args)
    let text = ''
    const add = (chunk: Buffer): void => {
      text += chunk
    }
    child.stdout.on('data', add)
    child.stderr.on('data', add)
    child.once('error', reject)
    child.once('close', () => resolve(text))
    child.stdin.end(input)
  })
}
