/**
 * b that the peers choose, compared with fixed values: mean regret in simulated networks that differ in latency, period, degree, speeds
 * and rate of inputs. All runs of a case get the same inputs. Deterministic; about half an hour on four cores with other load.
 */
import { AUTO_BATCH } from '../../src/task/batch.js'
import { CASES, mean } from './regret-cases.js'
import type { Row } from './row.js'

const FIXED = [16, 32, 64, 128, 256, 512]
export async function* bench(): AsyncGenerator<Row> {
  for (const [name, settings] of Object.entries(CASES)) {
    const fixed = FIXED.map(batch => ({ batch, ...mean(settings, { batch }) }))
    const best = fixed.reduce((one, other) => (other.regret < one.regret ? other : one))
    const { min: batch, max: batchMax } = AUTO_BATCH
    const auto = mean(settings, { batch, batchMax })
    yield {
      name: `${name}: regret of auto over the best fixed b`,
      value: auto.regret / best.regret,
      unit: '×',
      target: { most: 1.1 },
      details: {
        auto: auto.regret,
        'auto, MB': auto.megabytes,
        best: best.batch,
        'best, MB': best.megabytes,
        fixed: fixed.map(({ regret }) => regret)
      }
    }
  }
}
