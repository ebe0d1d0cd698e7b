import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createClient } from '@redis/client'
import { manualClock, tokenBucket } from 'sluicegate'
import { RedisProcess } from 'sluicegate-testkit'
import { commandBytes, ErrorReply, type RespReply, repliesIn } from 'sluicegate-testkit/servers/resp.js'
import { OPEN_ACCESS, sessionContext, TestSession } from 'sluicegate-testkit/service/running-resp.js'
import { runService } from 'sluicegate-testkit/service/running-service.js'
import type { Access } from './access.js'
import { Session } from './session.js'

const TOKENS: Readonly<Record<string, 'decide' | 'admin'>> = { 'token-of-a-gateway': 'decide', 'token-of-an-admin': 'admin' }
const WITH_TOKENS: Access = {
  generation: 1,
  needsToken: () => true,
  has: () => true,
  allows: (secret, scope) => TOKENS[secret ?? ''] === scope || TOKENS[secret ?? ''] === 'admin',
  priorityOf: () => undefined,
}

test('a connection whose token is none any more has to show another', () => {
  const tokens: Record<string, 'decide' | 'admin'> = { old: 'admin', 'for all': 'decide' }
  let generation = 1
  const access: Access = {
    ...WITH_TOKENS,
    get generation() {
      return generation
    },
    allows: (secret, scope) => tokens[secret ?? ''] === scope || tokens[secret ?? ''] === 'admin',
  }
  const client = new TestSession(sessionContext({ access }))
  client.call('AUTH', 'old')
  assert.equal(client.call('PING'), 'PONG')
  delete tokens.old
  generation++
  assert.match(String((client.call('PING') as ErrorReply).message), /^NOAUTH/)
  client.call('AUTH', 'for all')
  generation++
  assert.equal(client.call('PING'), 'PONG')
})

test('CL.THROTTLE answers with five integers, as redis-cell does', () => {
  const clock = manualClock(1.7e12)
  const client = new TestSession(sessionContext({ clock }))
  assert.deepEqual(client.call('CL.THROTTLE', 'user123', 15, 30, 60), [0, 16, 15, -1, 2])
  assert.deepEqual(client.call('cl.throttle', 'user123', 15, 30, 60, 15), [0, 16, 0, -1, 32])
  assert.deepEqual(client.call('Cl.Throttle', 'user123', 15, 30, 60), [1, 16, 0, 2, 32])
  assert.deepEqual(client.call('CL.THROTTLE', 'user123', 15, 30, 60, 17), [1, 16, 0, -1, 32])
  clock.advance(3_001)
  assert.deepEqual(client.call('CL.THROTTLE', 'user123', 15, 30, 60, 0), [0, 16, 1, -1, 29])
})

test('work opens, adds and closes over RESP, by counted calls', () => {
  const clock = manualClock(0)
  const client = new TestSession(sessionContext({ clock, policies: [tokenBucket({ name: 'api', limit: 100, window: '1m' })] }))
  const opened = client.call('SG.OPEN', 'api', 'ada', 'EXPECT', 60, 'MOST', 80, 'TTL', 20_000, 'OVER', 'cut') as RespReply[]
  assert.deepEqual(opened.toSpliced(7, 1).toSpliced(4, 1), [0, 100, 40, -1, 60, 80, []])
  assert.ok(Number(opened[4]) >= 20_000, 'full when the hold has ended')
  const id = String(opened[7])
  const [limited, , remaining, retryMs, , , , none] = client.call('SG.OPEN', 'api', 'ada', 'EXPECT', 50) as RespReply[]
  assert.deepEqual([limited, remaining, none, Number(retryMs) >= 20_000], [1, 40, null, true])
  assert.deepEqual(client.call('sg.add', id, 10, 'CALL', 1), [0, 10, 50, 0, 70, -1])
  assert.deepEqual(client.call('SG.ADD', id, 10, 'CALL', 1), [0, 10, 50, 0, 70, -1])
  assert.deepEqual(client.call('SG.ADD', id, 71), [1, 10, 50, 0, 70, -1], 'beyond its most')
  assert.deepEqual(client.call('SG.CLOSE', id, 25), [25, 0, 75, []])
  assert.deepEqual(client.call('SG.CLOSE', id, 25), [25, 0, 75, []])
  for (const [words, error] of [
    [['SG.ADD', id, 1], /^HOLDCLOSED/],
    [['SG.CLOSE', id, 25, 'CALL', 9], /^HOLDCLOSED/],
    [['SG.ADD', 'none', 1], /^NOHOLD/],
    [['SG.OPEN', 'none', 'ada'], /^NOPOLICY/],
    [['SG.OPEN', 'api', 'ada', 'EXPECT'], /^ERR syntax error/],
    [['SG.OPEN', 'api', 'ada', 'WANT', 1], /^ERR syntax error/],
    [['SG.OPEN', 'api', 'ada', 'EXPECT', 0], /^ERR .*integer/],
    [['SG.OPEN', 'api', 'ada', 'TTL', 9], /^ERR TTL must be 10 to 3600000/],
    [['SG.OPEN', 'api', 'ada', 'OVER', 'wait', 'TTL', 60_001], /^ERR TTL must be 10 to 60000/],
    [['SG.OPEN', 'api', 'ada', 'OVER', 'never'], /^ERR OVER/],
    [['SG.ADD', id, -1], /^ERR/],
    [['SG.ADD', id, '1.5'], /^ERR value is not an integer/],
    [['SG.ADD', id, 1, 'CALL', 0], /^ERR CALL/],
    [['SG.ADD', id, 1, 'CALL'], /^ERR wrong number/],
  ] as const)
    assert.match(String((client.call(...words) as ErrorReply).message), error, words.join(' '))
})

test('keys of CL.THROTTLE differ by every byte', () => {
  const client = new TestSession()
  const keys = ['', 'k', 'K', '\0', 'k\r\n', Buffer.from([0xff]), Buffer.from([0xc3, 0xbf]), Buffer.from([0xc3]), 'x'.repeat(16_384)]
  for (const key of keys) assert.deepEqual(client.call('CL.THROTTLE', key, 0, 1, 60), [0, 1, 0, -1, 60])
  for (const key of keys) assert.deepEqual(client.call('CL.THROTTLE', key, 0, 1, 60), [1, 1, 0, 60, 60])
})

test('CL.THROTTLE says what is wrong with its arguments', () => {
  const client = new TestSession()
  const faults: readonly [args: readonly (string | number)[], message: string][] = [
    [['a', 1, 1], "ERR wrong number of arguments for 'cl.throttle' command"],
    [['a', 1, 1, 1, 1, 1], "ERR wrong number of arguments for 'cl.throttle' command"],
    [['a', 'x', 1, 1], 'ERR value is not an integer or out of range'],
    [['a', 1, 1.5, 1], 'ERR value is not an integer or out of range'],
    [['a', 1, 1, '9223372036854775808'], 'ERR value is not an integer or out of range'],
    [['a', -1, 1, 1], 'ERR max_burst must be an integer >= 0'],
    [['a', 1, 0, 1], 'ERR count must be an integer >= 1'],
    [['a', 1, 1, 0], 'ERR period must be an integer >= 1'],
    [['a', 1, 1, 1, -1], 'ERR quantity must be an integer >= 0'],
    [['a', 1, 1_000_000_001, 1], 'ERR count must be at most one per nanosecond, 1000000000 in this period'],
    [['a', 400, 1, 86_400], 'ERR max_burst must be refilled within 400 days: lower it, raise count or shorten the period'],
  ]
  for (const [args, message] of faults) assert.deepEqual(client.call('CL.THROTTLE', ...args), new ErrorReply(message))
})

test('named policies are taken from, looked at, refunded and reset, with times in milliseconds', () => {
  const clock = manualClock(1.7e12)
  const client = new TestSession(sessionContext({ clock, policies: [tokenBucket({ limit: 10, window: '1s', name: 'api' })] }))
  assert.deepEqual(client.call('SG.TAKE', 'api', 'bob'), [0, 10, 9, -1, 100])
  assert.deepEqual(client.call('SG.TAKE', 'api', 'bob', 9), [0, 10, 0, -1, 1000])
  assert.deepEqual(client.call('SG.TAKE', 'api', 'bob', 3), [1, 10, 0, 300, 1000])
  assert.deepEqual(client.call('SG.TAKE', 'api', 'bob', 11), [1, 10, 0, -1, 1000])
  assert.deepEqual(client.call('SG.PEEK', 'api', 'bob', 2), [1, 10, 0, 200, 1000])
  assert.deepEqual(client.call('SG.REFUND', 'api', 'bob', 4), [0, 10, 4, -1, 600])
  assert.deepEqual(client.call('SG.RESET', 'api', 'bob'), [0, 10, 10, -1, 0])
  assert.deepEqual(client.call('SG.TAKE', 'apo', 'bob'), new ErrorReply('NOPOLICY there is no policy "apo"; did you mean "api"?'))
  assert.deepEqual(client.call('SG.TAKE', 'api', 'bob', 0), new ErrorReply('ERR cost: must be an integer >= 1 (got 0)'))
  assert.match(errorOf(client.call('SG.TAKE', 'api', '')), /^ERR key: must be a string of 1 to 1024 characters/)
})

test('keys of policies are text, the same as over HTTP; bytes that are no UTF-8 are keys of their own', () => {
  const context = sessionContext()
  const client = new TestSession(context)
  client.call('SG.TAKE', 'api', 'Zoë', 4)
  assert.equal((context.engine.policy('api')?.peek('Zoë', 1) as { remaining: number } | undefined)?.remaining, 6)
  const keys = [Buffer.from([0xff]), Buffer.from([0xfe]), '\ufffd', Buffer.from([0xff, 0xff])]
  for (const key of keys) assert.equal((client.call('SG.TAKE', 'api', key) as number[])[2], 9)
})

test('without a token, clients that need one can only authenticate', () => {
  const client = new TestSession(sessionContext({ access: WITH_TOKENS }))
  for (const command of [['PING'], ['CL.THROTTLE', 'a', 1, 1, 1], ['NO.SUCH', 'x']]) {
    assert.deepEqual(client.call(...command), new ErrorReply('NOAUTH Authentication required.'))
  }
  assert.match(errorOf(client.call('HELLO', 3)), /^NOAUTH HELLO must be called/)
  assert.deepEqual(client.call('AUTH', 'wrong'), new ErrorReply('WRONGPASS invalid username-password pair or user is disabled.'))
  assert.deepEqual(client.call('AUTH', 'token-of-a-gateway'), 'OK')
  assert.deepEqual(client.call('CL.THROTTLE', 'a', 1, 1, 1), [0, 2, 1, -1, 1])
  assert.deepEqual(
    client.call('SG.RESET', 'api', 'bob'),
    new ErrorReply("NOPERM User default has no permissions to run the 'sg.reset' command"),
  )
  assert.ok(client.call('HELLO', 3, 'AUTH', 'ops', 'token-of-an-admin') instanceof Map)
  assert.deepEqual(client.call('SG.RESET', 'api', 'bob'), [0, 10, 10, -1, 0])
  assert.equal(client.call('RESET'), 'RESET')
  assert.deepEqual(client.call('PING'), new ErrorReply('NOAUTH Authentication required.'))
})

test('a connection that keeps sending wrong tokens is closed', () => {
  const client = new TestSession(sessionContext({ access: WITH_TOKENS }))
  const { replies, waiting } = client.feed(Buffer.concat(Array.from({ length: 20 }, (_, i) => commandBytes('AUTH', `guess ${i}`))))
  assert.equal(repliesIn(replies).length, 8)
  assert.equal(waiting, 'end')
})

test('HELLO chooses the version, and its reply is a map in RESP 3', () => {
  const client = new TestSession()
  const fields = client.call('HELLO', 3, 'SETNAME', 'web') as ReadonlyMap<RespReply, RespReply>
  assert.equal(fields.get('server'), 'sluicegate')
  assert.equal(fields.get('proto'), 3)
  assert.equal(client.call('CLIENT', 'GETNAME'), 'web')
  assert.deepEqual((client.call('HELLO', 2) as RespReply[]).slice(4, 6), ['proto', 2])
  assert.deepEqual(client.call('HELLO', 4), new ErrorReply('NOPROTO unsupported protocol version'))
  assert.deepEqual(client.call('HELLO', 'x'), new ErrorReply('ERR Protocol version is not an integer or out of range'))
  assert.deepEqual(client.call('HELLO', 2, 'SETNAME'), new ErrorReply("ERR Syntax error in HELLO option 'SETNAME'"))
})

test('what clients send when they connect is answered', () => {
  const client = new TestSession()
  assert.equal(client.call('PING'), 'PONG')
  assert.equal(client.call('ping', 'hi'), 'hi')
  assert.equal(client.call('ECHO', Buffer.from([0, 255])), '\0\xff')
  assert.equal(client.call('SELECT', 0), 'OK')
  assert.deepEqual(client.call('SELECT', 1), new ErrorReply('ERR DB index is out of range'))
  assert.equal(client.call('CLIENT', 'GETNAME'), null)
  assert.equal(client.call('CLIENT', 'SETNAME', 'a-name'), 'OK')
  assert.match(errorOf(client.call('CLIENT', 'SETNAME', 'a name')), /^ERR Client names cannot contain spaces/)
  assert.equal(client.call('CLIENT', 'SETINFO', 'LIB-NAME', 'node-redis'), 'OK')
  assert.equal(client.call('CLIENT', 'ID'), 1)
  assert.match(client.call('CLIENT', 'INFO') as string, /^id=1 name=a-name user=default lib-name=node-redis /)
  assert.deepEqual(client.call('CONFIG', 'GET', 'save'), ['save', ''])
  assert.deepEqual(client.call('CONFIG', 'GET', 'maxmemory'), [])
  assert.match(client.call('INFO') as string, /^# Server\r\nredis_version:7.0.0\r\n/)
  client.call('CL.THROTTLE', 'a', 1, 1, 1)
  assert.equal(client.call('DBSIZE'), 1)
  const commands = client.call('COMMAND') as RespReply[]
  assert.equal(client.call('COMMAND', 'COUNT'), commands.length)
  assert.deepEqual(commands[0], ['cl.throttle', -5, ['write', 'fast'], 1, 1, 1])
  assert.deepEqual(client.call('COMMAND', 'INFO', 'PING', 'nope'), [['ping', -1, ['fast'], 0, 0, 0], null])
  assert.deepEqual(client.call('COMMAND', 'DOCS', 'ping'), ['ping', ['summary', 'Returns PONG, or its argument.', 'group', 'generic']])
  assert.deepEqual(client.call('GET', 'a', 'b'), new ErrorReply("ERR unknown command 'GET', with args beginning with: 'a' 'b' "))
  assert.deepEqual(client.call('ECHO'), new ErrorReply("ERR wrong number of arguments for 'echo' command"))
})

test('what go-redis sends in one piece when it connects is answered as it expects', () => {
  const client = new TestSession(sessionContext({ access: WITH_TOKENS }))
  const { replies } = client.feed(
    Buffer.concat([
      commandBytes('hello', 3, 'auth', 'default', 'token-of-a-gateway', 'setname', 'web'),
      commandBytes('client', 'setinfo', 'LIB-NAME', 'go-redis(,go1.24.0)'),
      commandBytes('client', 'setinfo', 'LIB-VER', '9.22.0'),
      commandBytes('client', 'maint_notifications', 'on', 'moving-endpoint-type', 'internal-ip'),
      commandBytes('select', 0),
      commandBytes('cl.throttle', 'k', 15, 30, 60),
    ]),
  )
  const [hello, ...others] = repliesIn(replies)
  assert.equal((hello as ReadonlyMap<RespReply, RespReply>).get('proto'), 3)
  // It goes on without notifications where the server knows none.
  const unknown = new ErrorReply("ERR unknown subcommand 'maint_notifications'. Try CLIENT HELP.")
  assert.deepEqual(others, ['OK', 'OK', unknown, 'OK', [0, 16, 15, -1, 2]])
})

test('a command with an argument that is too long is an error, and the commands around it are answered', () => {
  const long = (bytes: number): Buffer => commandBytes('SG.TAKE', 'api', 'x'.repeat(bytes))
  const { replies, waiting } = new TestSession().feed(
    Buffer.concat([commandBytes('PING'), long(16_385), commandBytes('PING'), long(65_000), commandBytes('ECHO', 'last')]),
  )
  const error = new ErrorReply('ERR an argument must have at most 16384 bytes')
  assert.deepEqual(repliesIn(replies), ['PONG', error, 'PONG', error, 'last'])
  assert.equal(waiting, 'input')
})

test('after QUIT, a fault of the protocol or the first words of an HTTP request nothing more is answered', () => {
  for (const [input, replies] of [
    ['QUIT\r\nPING\r\n', ['OK']],
    ['*1\r\n+x\r\nPING\r\n', [new ErrorReply("ERR Protocol error: expected '$', got '+'")]],
    ['POST / HTTP/1.1\r\nHost: x\r\n\r\nCL.THROTTLE a 1 1 1\r\n', []],
    ['Host: x\r\nPING\r\n', []],
  ] as const) {
    const answered = new TestSession().feed(Buffer.from(input))
    assert.deepEqual(repliesIn(answered.replies), replies)
    assert.equal(answered.waiting, 'end')
  }
})

test('a turn answers a bounded number of commands, and keeps a bounded number of replies', () => {
  const context = sessionContext()
  const session = new Session(1, context, () => undefined)
  session.push(Buffer.alloc(6 * 5_000, 'PING\r\n'))
  assert.equal(session.run(), 'turn')
  const bytes = session.takeReplies().length
  assert.ok(bytes > 0 && bytes <= 7 * 128, `${bytes}`)
  const echoing = new Session(2, context, () => undefined)
  echoing.push(Buffer.concat(Array.from({ length: 20 }, () => commandBytes('ECHO', 'x'.repeat(10_000)))))
  assert.equal(echoing.run(), 'room')
  assert.ok(echoing.takeReplies().length < 65_536 + 10_020)
})

test('commands behind one that waits for a store are answered in order, up to a bound', async () => {
  const context = sessionContext()
  const waiting: (() => void)[] = []
  const policy = context.engine.policy('api') as { take: unknown }
  const decision = { allowed: true, limit: 10, remaining: 9, retryAfterMs: 0, resetAfterMs: 1, policy: 'api', source: 'store' }
  policy.take = (key: string) =>
    key === 'fails' ? Promise.reject(new Error('internal')) : new Promise((resolve) => waiting.push(() => resolve(decision)))
  const session = new Session(1, context, () => undefined)
  session.push(
    Buffer.concat([
      commandBytes('SG.TAKE', 'api', 'a'),
      commandBytes('PING'),
      commandBytes('SG.TAKE', 'api', 'b'),
      commandBytes('ECHO', 'x'),
    ]),
  )
  assert.equal(session.run(), 'input')
  assert.equal(session.readyBytes, 0)
  waiting[1]?.()
  await new Promise(setImmediate)
  assert.equal(session.readyBytes, 0)
  waiting[0]?.()
  await new Promise(setImmediate)
  assert.deepEqual(repliesIn(session.takeReplies()), [[0, 10, 9, -1, 1], 'PONG', [0, 10, 9, -1, 1], 'x'])
  session.push(Buffer.concat(Array.from({ length: 200 }, () => commandBytes('SG.TAKE', 'api', 'a'))))
  let waits = session.run()
  while (waits === 'turn') waits = session.run()
  assert.deepEqual([waits, session.inFlight], ['store', 128])
})

test('without tokens all clients may decide, and any token of the default user is an error as in Redis', () => {
  const client = new TestSession(sessionContext({ access: { ...OPEN_ACCESS, needsToken: (scope) => scope === 'admin' } }))
  assert.match(errorOf(client.call('AUTH', 'x')), /^ERR AUTH <password> called without any password configured/)
  assert.equal(client.call('AUTH', 'default', 'x'), 'OK')
  assert.match(errorOf(client.call('SG.REFUND', 'api', 'bob')), /^NOPERM User default/)
})

function errorOf(reply: RespReply): string {
  assert.ok(reply instanceof ErrorReply, `no error: ${JSON.stringify(reply)}`)
  return reply.message
}

test('empty commands, which have no answer, take turns as others do', () => {
  for (const empty of ['\r\n', '*0\r\n', '*-1\r\n']) {
    const session = new Session(1, sessionContext(), () => {})
    session.push(Buffer.from(`${empty.repeat(1_000)}PING\r\n`))
    let turns = 0
    while (session.run() === 'turn') turns++
    assert.ok(turns >= 7, `${turns} turns`)
    assert.equal(String(session.takeReplies()), '+PONG\r\n')
  }
})

test('services with the same store share the keys of CL.THROTTLE, and pipelined replies stay in order', async (t) => {
  const redis = await RedisProcess.start()
  t.after(() => redis.stop())
  const yaml = `
listen: { http: "off", resp: "127.0.0.1:0" }
policies:
  api: { algorithm: token-bucket, limit: 10, window: 1m }
storage: { redis: { url: "${redis.url}", timeout: 1s } }
log: { level: silent }
`
  const [one, two] = [await connected(t, yaml), await connected(t, yaml)]
  for (let call = 0; call < 8; call++) {
    for (const client of [one, two]) assert.equal((await throttled(client, 'k'))[0], 0)
  }
  const replies = await Promise.all([
    throttled(one, 'k'),
    one.sendCommand(['PING']),
    one.sendCommand(['CL.THROTTLE', 'k', '15', '0', '3600']).catch((error: Error) => error.message),
    one.sendCommand(['ECHO', 'last']),
  ])
  assert.deepEqual(
    replies.map((reply) => (Array.isArray(reply) ? reply[0] : reply)),
    [1, 'PONG', 'ERR count must be an integer >= 1', 'last'],
  )
  assert.equal((await throttled(two, '\0\xff'))[2], 15)
})

type Client = ReturnType<typeof createClient>

async function connected(t: TestContext, yaml: string): Promise<Client> {
  const service = await runService(t, yaml)
  const client: Client = createClient({ url: service.urls.get('resp') ?? assert.fail() })
  client.on('error', () => undefined)
  t.after(() => client.destroy())
  return client.connect()
}

async function throttled(client: Client, key: string): Promise<readonly number[]> {
  return (await client.sendCommand(['CL.THROTTLE', key, '15', '30', '3600'])) as unknown as readonly number[]
}
