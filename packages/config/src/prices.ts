import { dirname, resolve } from 'node:path'
import { PolicyError } from 'sluicegate'
import { type PriceTable, prices } from 'sluicegate/prices'
import { ConfigError, type Fault, fileError } from './fault.js'
import { choice, integer, option, text, valuesOf } from './option.js'
import { parseYaml } from './parse-yaml.js'
import { readText } from './read-file.js'
import { Section } from './section.js'

const MAX_BYTES = 1_000_000
const MAX_MODELS = 10_000
const MICRO_UNITS = integer(0, Number.MAX_SAFE_INTEGER)

/** The section `prices`. */
export const PRICES = {
  file: option('file', text('prices.yaml'), {
    what: 'A file, relative to this one, with what tokens of models cost: then requests may say which tokens they used in place of a cost.',
    example: 'prices.yaml',
    required: ': name the file with the prices',
  }),
}

/** The file itself. */
const PRICE_FILE = {
  per: option('per', choice([1, 1_000, 1_000_000]), {
    what: 'For how many tokens the prices are.',
    standard: 1,
    example: 1_000_000,
  }),
}

/** A model in that file. */
const MODEL_PRICE = {
  input: option('input', MICRO_UNITS, { what: 'Micro-units for tokens that were read.', example: 150_000, required: '' }),
  cached: option('cached', MICRO_UNITS, {
    what: 'The same for those that the provider had in its cache. Default: as `input`.',
    example: 75_000,
  }),
  output: option('output', MICRO_UNITS, { what: 'The same for tokens that were written.', example: 600_000, required: '' }),
}

/** Prices, and where they are from. */
export interface PricesConfig {
  readonly file: string
  readonly table: PriceTable
}

/** The prices that `section` names; undefined without any, and after a fault. */
export function readPrices(root: Section): PricesConfig | undefined {
  if (!root.has('prices')) return undefined
  const section = root.section('prices')
  const { file: name } = valuesOf(section, PRICES)
  section.done()
  if (name === undefined) return undefined
  const file = resolve(dirname(section.file), name)
  try {
    return { file, table: readPriceFile(file) }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    section.addFaults(error.faults)
    return undefined
  }
}

/**
 * A file of prices, YAML or JSON.
 *
 * @throws {ConfigError} with every fault, each with its line and column.
 */
export function readPriceFile(file: string): PriceTable {
  if (!/\.(ya?ml|json)$/i.test(file)) throw fileError(file, 'must end in .json, .yaml or .yml, which says how it is read')
  const faults: Fault[] = []
  const source = parseYaml(file, readText(file, MAX_BYTES), faults)
  if (faults.length > 0) throw new ConfigError(faults)
  const whole = new Section(source, source.document.contents)
  const { per } = valuesOf(whole, PRICE_FILE)
  whole.require('models', ': give each model its prices')
  const section = whole.section('models')
  const names = section.names()
  if (names.length > MAX_MODELS) whole.fault('models', `has ${names.length} models, and ${MAX_MODELS} are the most`)
  const models: [string, PriceTable['models'][string]][] = []
  for (const name of names) {
    const model = section.section(name)
    const { input, output, cached } = valuesOf(model, MODEL_PRICE)
    model.done()
    if (input !== undefined && output !== undefined) models.push([name, { input, output, ...(cached !== undefined && { cached }) }])
  }
  section.done()
  whole.done()
  if (faults.length > 0) throw new ConfigError(faults)
  return checkedTable(file, { per, models: Object.fromEntries(models) })
}

/** What the library makes of it. */
function checkedTable(file: string, table: PriceTable): PriceTable {
  try {
    prices(table)
    return table
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    throw fileError(file, error.message)
  }
}
