/** Constants that the build inserts (scripts/page-config.ts). */
declare const BUILT_IN_SCENARIOS: readonly import('../controls.js').BuiltIn[]
declare const REPAIRS: readonly {
  readonly name: import('../../../../sim/fuzz/repairs.js').RepairName
  readonly title: string
  readonly help: string
}[]
