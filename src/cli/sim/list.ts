/** `admb sim list`: the built-in scenarios, and what each is about. */
import { builtInScenarios } from '../../../sim/index.js'
import { print, printJson } from '../output/output.js'

export function showScenarios({ json }: { json?: boolean }): void {
  const scenarios = builtInScenarios()
  if (json) {
    printJson({ command: 'sim list', scenarios })
    return
  }
  const width = Math.max(...scenarios.map(({ name }) => name.length))
  for (const { name, about } of scenarios) print(`${name.padEnd(width)}  ${about}`)
  print('\nRun one with: admb sim run NAME. Compare all algorithms on it with: admb sim compare NAME')
}
