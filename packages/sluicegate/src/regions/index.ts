export { region } from './region.js'
export type { RegionOptions } from './region-options.js'
