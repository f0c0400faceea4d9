/** What the nodes of a scenario learn with: the learner, and the recipe by which they compute predictors. */
import { startingPredictor } from '../src/admb/index.js'
import {
  AdaptiveBatch,
  addNoise,
  averagingRule,
  carry,
  carryingLayout,
  createAveraging,
  createLearner,
  createRule,
  digest,
  InfluenceBound,
  isLayered,
  type Layout,
  LocalSteps,
  latticeRecipe,
  roundedRecipe,
  SparseSums,
  sparseParts,
  type UpdateRule
} from '../src/learning/index.js'
import type { AlgorithmDefinition } from './algorithms/definition.js'
import { algorithms } from './algorithms/index.js'
import { DoublingBatch } from './doubling-batch.js'
import type { Random } from './engine/random.js'
import type { SimulateOptions } from './options.js'
import { batchOf } from './regret/bounds.js'
import { constantsOf, theoryRule } from './regret/constants.js'
import { averageOf, privacyOf, ruleSpecOf, type Scenario, ScenarioError } from './scenario.js'
import type { Inputs } from './streams/inputs.js'
import type { Topology } from './topology.js'
import type { Learning } from './world.js'

/** Blocks with as many elements are rounded in the simulator, where models are small. */
const MIN_ROUNDED = 16

/** @param random draws the noise of differential privacy */
export function createLearning(
  scenario: Scenario,
  options: SimulateOptions,
  inputs: Inputs,
  topology: Topology,
  random: Random
): Learning {
  const { batch, sums, sumBytes } = scenario
  const { model, dimension, classes, targetScale } = inputs
  const privacy = privacyOf(scenario)
  const noise = options.noise ?? (privacy && (sum => addNoise(sum, privacy.deviation, () => random.normal())))
  const { makesLocalSteps }: AlgorithmDefinition = algorithms[scenario.algorithm]
  const local =
    scenario.localSteps === undefined || makesLocalSteps
      ? undefined
      : { batch, steps: scenario.localSteps, momentum: scenario.localMomentum }
  let learner = options.learner ?? createLearner({ model, dimension, classes, targetScale, clip: scenario.clip })
  const rule = ruleOf(scenario, inputs, topology, learner.layout)
  let recipe = options.recipe ?? {
    rule: local ? averagingRule(rule, local) : rule,
    averaging: createAveraging({ name: averageOf(scenario) }),
    digest
  }
  if (sums === 'lattice' && sumBytes === undefined) recipe = latticeRecipe(recipe, { batch })
  const influence = scenario.trust.bounded ? new InfluenceBound(learner.layout) : undefined
  const adaptiveBatch = adaptiveBatchOf(scenario, carryingLayout(learner.layout, [influence]))
  ;({ learner, recipe } = carry({ learner, recipe }, [influence, adaptiveBatch]))
  const budget = sumBytes === undefined ? undefined : new SparseSums(sumBytes, learner.layout, recipe.rule)
  if (budget) ({ learner, recipe } = sparseParts({ learner, recipe }, budget))
  // Exact learners count with numbers that must not be rounded.
  if (sums === 'lattice' && options.recipe === undefined) recipe = roundedRecipe(recipe, learner.layout, MIN_ROUNDED)
  return {
    learner,
    recipe,
    start: startingPredictor(learner.initial(), recipe),
    adaptiveBatch,
    localSteps: local && (() => new LocalSteps(rule, local, learner.layout)),
    budget,
    influence,
    noise
  }
}

function adaptiveBatchOf({ batch, batchMax, batchPower, inputs }: Scenario, layout: Layout) {
  if (batchPower !== undefined) return new DoublingBatch(batch, batchPower, inputs, layout)
  return batchMax === undefined ? undefined : new AdaptiveBatch({ min: batch, max: batchMax }, layout)
}

function ruleOf(scenario: Scenario, inputs: Inputs, topology: Topology, layout: Layout): UpdateRule {
  if (scenario.rule !== 'theory') {
    const spec = ruleSpecOf(scenario)
    return createRule(spec, isLayered(spec) ? layout : undefined)
  }
  const constants = constantsOf(inputs)
  if (constants === undefined) {
    const reason = 'the theorems cover the logistic loss on independent draws from one distribution'
    throw new ScenarioError(`rule: ${reason}; set stream to logistic or sparse and drift to 0, or another rule`)
  }
  return theoryRule(constants, batchOf(scenario, topology))
}
