package queue

// A heap of walkers by finish, the first at the top.

func heapify(h []walker) {
	for i := len(h)/2 - 1; i >= 0; i-- {
		siftDown(h, i)
	}
}

// siftUp puts the last one in its place.
func siftUp(h []walker) {
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if h[parent].finish <= h[i].finish {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func siftDown(h []walker, i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].finish < h[child].finish {
			child++
		}
		if h[i].finish <= h[child].finish {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
