/** Compares algorithms on a network that loses messages, in virtual time. */
import { simulate } from 'admb'

const scenario = { nodes: 16, inputs: 10_000, batch: 128, latency: 5, loss: 0.05, seed: 7 }
for (const algorithm of ['serial', 'admb', 'isolated']) {
  const { regret, averageLoss, messages } = simulate('binary-tree', { ...scenario, algorithm })
  const row = [regret.toFixed(0), averageLoss.toFixed(4), String(messages)].map(cell => cell.padStart(9))
  console.log(`${algorithm.padEnd(9)} regret${row[0]}   loss${row[1]}   messages${row[2]}`)
}
