/**
 * A period that adapts, compared with a fixed one: mean regret and traffic in simulated networks that differ in latency, period, degree,
 * speeds and rate of inputs. Deterministic.
 */
import { CASES, mean } from './regret-cases.js'
import type { Row } from './row.js'

const BATCHES = [128, 512]

export async function* bench(): AsyncGenerator<Row> {
  for (const [name, settings] of Object.entries(CASES)) {
    for (const batch of BATCHES) {
      const [fixed, auto] = [false, true].map(autoPeriod => mean(settings, { batch, autoPeriod }))
      yield {
        name: `${name}, b = ${batch}: regret with a period that adapts over that with a fixed one`,
        value: auto.regret / fixed.regret,
        unit: '×',
        target: { most: 1.02 },
        details: { bytes: auto.megabytes / fixed.megabytes, regret: fixed.regret, MB: fixed.megabytes }
      }
    }
  }
}
