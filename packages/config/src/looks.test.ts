import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { isFileSystemSilent, Looks } from './looks.js'

test('a look that has no answer ends within ten seconds, and no other is made until it has one', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const looks = new Looks()
    let answer: (found: string) => void = () => undefined
    let begun = 0
    const begin = (): Promise<string> => {
      begun++
      return new Promise((resolve) => {
        answer = resolve
      })
    }
    for (let i = 0; i < 3; i++) {
      const found = looks.look(begin)
      mock.timers.tick(10_000)
      assert.equal(await found, 'no answer within 10 s')
    }
    assert.equal(begun, 1)
    answer('there')
    assert.equal(await looks.look(begin), 'there')
    const next = looks.look(begin)
    answer('changed')
    assert.equal(await next, 'changed')
    assert.equal(begun, 2)
    assert.equal(await looks.look(() => Promise.reject(new Error('gone'))), 'Error: gone')
    assert.equal(isFileSystemSilent(), false)
  } finally {
    mock.timers.reset()
  }
})
