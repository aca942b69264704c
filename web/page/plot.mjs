// A small line plot as SVG: tokens a second over the depth of context, least to most as a bar.
import { svg } from './dom.mjs';
import { rateText } from './format.mjs';

const kWidth = 440;
const kHeight = 220;
const kMargin = { left: 52, right: 16, top: 14, bottom: 34 };
const kTicks = 4;

/** The next of 1, 2, 2.5 and 5 times a power of ten. @param {number} value */
export function niceCeiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((top) => top >= value) ?? 10 * power;
}

/**
 * @param {string} title
 * @param {{depth: number, median: number, min: number, max: number}[]} points
 * @param {string} colour a class
 */
export function plot(title, points, colour) {
  const top = niceCeiling(Math.max(...points.map((point) => point.max), 1e-9));
  const deepest = Math.max(...points.map((point) => point.depth), 1);
  const x = (depth) => kMargin.left + (depth / deepest) * (kWidth - kMargin.left - kMargin.right);
  const y = (value) => kHeight - kMargin.bottom - (value / top) * (kHeight - kMargin.top - kMargin.bottom);
  const words = points.map((point) => `${rateText(point.median)} at ${point.depth}`).join(', ');
  const grid = Array.from({ length: kTicks + 1 }, (_, i) => (top * i) / kTicks).map((value) => [
    svg('line', { class: 'grid', x1: kMargin.left, x2: kWidth - kMargin.right, y1: y(value), y2: y(value) }),
    svg('text', { class: 'tick', x: kMargin.left - 8, y: y(value) + 4, 'text-anchor': 'end' }, tickText(value)),
  ]);
  const marks = points.map((point) => [
    svg('line', { class: 'range', x1: x(point.depth), x2: x(point.depth), y1: y(point.min), y2: y(point.max) }),
    svg('circle', { cx: x(point.depth), cy: y(point.median), r: 4 }, svg('title', {}, `${rateText(point.median)} tok/s at depth ${point.depth}`)),
    svg('text', { class: 'tick', x: x(point.depth), y: kHeight - kMargin.bottom + 16, 'text-anchor': 'middle' }, String(point.depth)),
  ]);
  return svg('svg', { class: `plot ${colour}`, viewBox: `0 0 ${kWidth} ${kHeight}`, role: 'img', 'aria-label': `${title}, tokens a second by context: ${words}` },
    grid,
    svg('polyline', { points: points.map((point) => `${x(point.depth)},${y(point.median)}`).join(' ') }),
    marks,
    svg('text', { class: 'axis', x: (kWidth + kMargin.left) / 2, y: kHeight - 4, 'text-anchor': 'middle' }, 'tokens of context before'));
}

/** @param {number} value */
function tickText(value) {
  return value >= 1000 ? `${value / 1000}k` : String(Number(value.toPrecision(3)));
}
