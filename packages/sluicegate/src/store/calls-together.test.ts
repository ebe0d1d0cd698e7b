import assert from 'node:assert/strict'
import { test } from 'node:test'
import { turns } from 'sluicegate-testkit/turns.js'
import { CallsTogether } from './calls-together.js'

/** Calls that are answered when the test says so. */
function held() {
  const sent: { readonly calls: readonly string[]; answer(error?: Error): void }[] = []
  const together = new CallsTogether<string, string>(
    (calls) =>
      new Promise((resolve, reject) => {
        const answer = (error?: Error): void => (error === undefined ? resolve(calls.map((call) => `${call}!`)) : reject(error))
        sent.push({ calls, answer })
      }),
    (call) => call[0] as string,
  )
  return { sent, together, shape: () => sent.map(({ calls }) => calls.join(' ')) }
}

test('a call goes at once; those of a turn, and those that come while others are under way, go together', async () => {
  const { sent, together, shape } = held()
  const answers: Promise<string>[] = []
  for (const calls of ['a', 'bc', 'd', 'e', 'f', 'g']) {
    answers.push(...[...calls].map((call) => together.ask(call, undefined)))
    await turns()
  }
  assert.deepEqual(shape(), ['a', 'b c', 'd', 'e'])
  for (let i = 0; i < 5; i++) {
    sent[i]?.answer()
    await turns()
  }
  assert.deepEqual(shape(), ['a', 'b c', 'd', 'e', 'f g'])
  assert.deepEqual(await Promise.all(answers), ['a!', 'b!', 'c!', 'd!', 'e!', 'f!', 'g!'])
})

test('two calls for one key do not go together, and one that was given up does not go', async () => {
  const { sent, together, shape } = held()
  const controller = new AbortController()
  const answers = [together.ask('a1', undefined), together.ask('a2', undefined), together.ask('b', controller.signal)]
  controller.abort()
  await assert.rejects(answers[2] as Promise<string>)
  await turns()
  assert.deepEqual(shape(), ['a1', 'a2'])
  sent[0]?.answer(new Error('lost'))
  sent[1]?.answer()
  await assert.rejects(answers[0] as Promise<string>, /lost/)
  assert.equal(await answers[1], 'a2!')
})
