import assert from 'node:assert/strict'
import { isIP } from 'node:net'
import { test } from 'node:test'
import { clientAddresses } from './exchange.js'
import {
  addedSettings,
  allocationSettings,
  FRAMEWORKS,
  isSameSetting,
  type MiddlewareSetting,
  settingName,
  socketSettings,
} from './middleware-settings.js'

const CLIENTS: readonly MiddlewareSetting['clients'][] = ['one', 'many', 'mapped', 'ipv6']

test('no two rows of a table have one name, and no setting is measured twice', () => {
  for (const settings of [addedSettings(), allocationSettings(), socketSettings()]) {
    const names = settings.map((setting) => `${setting.framework} ${settingName(setting)}`)
    assert.equal(new Set(names).size, settings.length)
    for (const setting of settings) assert.equal(settings.filter((other) => isSameSetting(other, setting)).length, 1)
  }
})

test('every framework is measured in every part', () => {
  for (const settings of [addedSettings(), allocationSettings(), socketSettings()]) {
    assert.deepEqual(new Set(settings.map(({ framework }) => framework)), new Set(FRAMEWORKS))
  }
})

test('every client has an address of its own', () => {
  for (const clients of CLIENTS) {
    const addresses = clientAddresses(clients)
    assert.equal(new Set(addresses).size, addresses.length)
    for (const address of addresses) assert.notEqual(isIP(address), 0, address)
  }
  assert.equal(clientAddresses('many').length, 10_000)
})
