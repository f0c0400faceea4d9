/** Constants that the build inserts (scripts/page-config.ts). */
declare const BUILT_IN_SCENARIOS: readonly import('../controls.js').BuiltIn[]
