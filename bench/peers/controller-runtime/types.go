package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// VirtualMachine holds those fields of the kind that the load sets and the operator writes.
type VirtualMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   VirtualMachineSpec   `json:"spec"`
	Status VirtualMachineStatus `json:"status,omitempty"`
}

// VirtualMachineSpec is what the user wants.
type VirtualMachineSpec struct {
	Running  bool     `json:"running"`
	Template Template `json:"template"`
}

// Template describes the guest.
type Template struct {
	Metadata TemplateMetadata `json:"metadata,omitempty"`
	Spec     TemplateSpec     `json:"spec"`
}

// TemplateMetadata carries the guest's labels.
type TemplateMetadata struct {
	Labels map[string]string `json:"labels,omitempty"`
}

// TemplateSpec is the hardware of the guest.
type TemplateSpec struct {
	Resources Resources `json:"resources"`
	Image     Image     `json:"image"`
	Networks  []Network `json:"networks,omitempty"`
}

// Resources are the sizes asked for.
type Resources struct {
	CPU    int64  `json:"cpu"`
	Memory string `json:"memory"`
	Disk   string `json:"disk,omitempty"`
}

// Image says where the boot disk comes from.
type Image struct {
	Source string `json:"source"`
}

// Network is one interface of the guest.
type Network struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
}

// VirtualMachineStatus is what the operator reports.
type VirtualMachineStatus struct {
	Phase      string             `json:"phase,omitempty"`
	NodeName   string             `json:"nodeName,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VirtualMachineList is what the server answers to a list.
type VirtualMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachine `json:"items"`
}

// DeepCopyObject is written by hand: five fields hold references.
func (v *VirtualMachine) DeepCopyObject() runtime.Object {
	out := *v
	v.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Template.Metadata.Labels = copyLabels(v.Spec.Template.Metadata.Labels)
	out.Spec.Template.Spec.Networks = append([]Network(nil), v.Spec.Template.Spec.Networks...)
	out.Status.Conditions = copyConditions(v.Status.Conditions)
	return &out
}

// DeepCopyObject copies every item.
func (l *VirtualMachineList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]VirtualMachine, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*VirtualMachine)
	}
	return &out
}

func copyLabels(in map[string]string) map[string]string {
	if in == nil {
		return nil
	}
	out := make(map[string]string, len(in))
	for key, value := range in {
		out[key] = value
	}
	return out
}

func copyConditions(in []metav1.Condition) []metav1.Condition {
	if in == nil {
		return nil
	}
	out := make([]metav1.Condition, len(in))
	for i := range in {
		in[i].DeepCopyInto(&out[i])
	}
	return out
}

func newScheme() (*runtime.Scheme, error) {
	version := schema.GroupVersion{Group: "novacron.io", Version: "v1alpha1"}
	builder := &scheme.Builder{GroupVersion: version}
	return builder.Register(&VirtualMachine{}, &VirtualMachineList{}).Build()
}
