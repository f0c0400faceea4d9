/** Validates fault schedules from files, such as those that `admb sim fuzz` writes. */
import * as z from 'zod'
import { ScenarioError } from '../scenario.js'
import type { Fault } from './schedule.js'

/** @param nodes number of nodes of the scenario */
function schemaOf(nodes: number) {
  const time = z.number().min(0)
  const node = z
    .int()
    .min(0)
    .max(nodes - 1)
  const link = { from: node, to: node }
  const fault = <K extends Fault['kind'], S extends z.ZodRawShape>(kind: K, fields: S) =>
    z.strictObject({ time, kind: z.literal(kind), ...fields })
  return z.discriminatedUnion('kind', [
    fault('crash', { node, silent: z.boolean().optional() }),
    fault('restart', { node, disk: z.enum(['kept', 'lost', 'reset']) }),
    fault('pause', { node }),
    fault('resume', { node }),
    fault('join', { node }),
    fault('leave', { node }),
    fault('partition', { sides: z.array(z.int().min(0)), oneWay: z.boolean() }),
    fault('heal', {}),
    fault('clog', { ...link, drips: z.boolean().optional() }),
    fault('unclog', { ...link, drips: z.boolean().optional() }),
    fault('hang', { node }),
    fault('unhang', { node }),
    fault('link', link),
    fault('unlink', link)
  ]) satisfies z.ZodType<Fault>
}

/**
 * @param nodes number of nodes of the scenario
 * @param source named in errors
 * @throws ScenarioError
 */
export function parseFaults(value: unknown, nodes: number, source: string): Fault[] {
  const parsed = z.array(schemaOf(nodes)).safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const [index, ...path] = issue.path
  const given = Array.isArray(value) && typeof index === 'number' ? ` (given: ${JSON.stringify(value[index])})` : ''
  const key =
    index === undefined ? 'faults' : `faults[${String(index)}]${path.map(name => `.${String(name)}`).join('')}`
  throw new ScenarioError(`${source}: ${key}: ${issue.message}${given}`)
}
