import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeyFault } from '../shared/calls/call-guard.js'
import { faultOf } from './run-script.js'

/** As node-redis and ioredis bring it; and as valkey-glide does, where it has other words. */
const OF_A_KEY = [
  'WRONGTYPE Operation against a key holding the wrong kind of value script: 62, on @user_script:1.',
  'WRONGTYPE: Operation against a key holding the wrong kind of value',
  'ERR user_script:1: attempt to compare nil with number script: dc, on @user_script:1.',
  'An error was signalled by the server: - ResponseError: user_script:1: attempt to perform arithmetic on a nil value',
  'ERR Error running script (call to f_62): @user_script:12: WRONGTYPE Operation against a key holding the wrong kind of value',
  'NOPERM this user has no permissions to access one of the keys used as arguments',
  'NOPERM No permissions to access a key',
  "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: d7",
  'TRYAGAIN Multiple keys request during rehashing of slot',
  'CROSSSLOT Keys in request do not hash to the same slot',
]

const OF_A_SERVER = [
  'LOADING Redis is loading the dataset in memory',
  'An error was signalled by the server: - BusyLoadingError: Redis is loading the dataset in memory',
  "READONLY You can't write against a read only replica. script: 94, on @user_script:1.",
  "An error was signalled by the server: - ReadOnly: You can't write against a read only replica.",
  "ERR Error running script (call to f_94): @user_script:37: @user_script: 37: -READONLY You can't write against a read only replica.",
  "ERR Error running script (call to f_94): @user_script:37: @user_script: 37: -OOM command not allowed when used memory > 'maxmemory'.",
  "OOM command not allowed when used memory > 'maxmemory'.",
  "OOM: command not allowed when used memory > 'maxmemory'. script: 94, on @user_script:1.",
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  'CLUSTERDOWN The cluster is down',
  'An error was signalled by the server: - ClusterDown: The cluster is down',
  'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
  'MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist to disk.',
  'NOREPLICAS Not enough good replicas to write.',
  'NOAUTH Authentication required.',
  'WRONGPASS invalid username-password pair or user is disabled.',
  "NOPERM this user has no permissions to run the 'evalsha' command",
  "NOPERM User limiter has no permissions to run the 'evalsha' command",
  "ERR The user executing the script can't run this command or subcommand script: 62, on @user_script:1.",
  "ERR unknown command 'EVALSHA', with args beginning with: 'x'",
  'ERR max number of clients reached',
  'MOVED 3999 127.0.0.1:6381',
]

/** What clients say by themselves. */
const OF_A_CLIENT = [
  'ECONNRESET',
  'connect ECONNREFUSED 127.0.0.1:6379',
  'Socket closed unexpectedly',
  'Connection is closed.',
  'Reached the max retries per request limit (which is 20). Refer to "maxRetriesPerRequest" option for details.',
  'The client is closed',
  'timed out',
  'Broken pipe - FatalSendError',
  'the connection was lost before the reply came',
  '',
]

for (const message of OF_A_KEY) {
  test(`of a key: ${message}`, () => {
    const error = new Error(message)
    const fault = faultOf(error)
    assert.ok(fault instanceof KeyFault)
    assert.deepEqual([fault.message, fault.cause], [message, error])
  })
}

for (const message of [...OF_A_SERVER, ...OF_A_CLIENT]) {
  test(`of a server, or the way to it: ${message}`, () => {
    const error = new Error(message)
    assert.equal(faultOf(error), error)
  })
}

test('what is no error stays as it is', () => {
  for (const thrown of [undefined, null, 'WRONGTYPE text', { message: 'WRONGTYPE text' }]) assert.equal(faultOf(thrown), thrown)
})
